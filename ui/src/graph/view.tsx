/**
 * A graph of any size. Edges are on a canvas; items are elements of the page, but only those that can be seen and read, so that there
 * are never many. Statuses change items and nothing else: the layout depends on the topology alone.
 */

import clsx from "clsx";
import { ChevronDown, ChevronRight, Maximize, Minus, Plus } from "lucide-react";
import { type KeyboardEvent, memo, type ReactNode, useCallback, useEffect, useRef, useState } from "react";
import { type NodeStatus, symbolOf, words } from "@/api/tables";
import { useTheme } from "@/shell/theme";
import { IconButton } from "@/ui/button";
import { StatusBar } from "@/ui/status";
import { type Camera, useCamera } from "./camera";
import type { Layout, Place } from "./layout";
import {
  type Graph,
  type GraphGroup,
  type GraphItem,
  type GraphNode,
  layoutInput,
  neighbours,
} from "./model";
import { FAR, paint, type Scene, visible } from "./paint";
import { useLayout } from "./use-layout";

type Props = {
  graph: Graph;
  /** The status of a node, where it is newer than that of the graph. */
  statuses?: ReadonlyMap<string, NodeStatus>;
  selected?: string | null;
  onSelect?: (id: string | null) => void;
  onToggle?: (group: string) => void;
  isDim?: (item: GraphItem) => boolean;
  path?: ReadonlySet<string>;
  /** What stands below the name of a node. */
  noteOf?: (node: GraphNode) => ReactNode;
  label: string;
  tools?: ReactNode;
};

const NOTHING: ReadonlySet<string> = new Set();
const NO_STATUSES: ReadonlyMap<string, NodeStatus> = new Map();
const MARGIN = 120;

/** Of a group: what is worst in it, which is what one wants to see from afar. */
const WORST: NodeStatus[] = [
  "FAILED",
  "INTERRUPTED",
  "UPSTREAM_FAILED",
  "RUNNING",
  "WAITING",
  "READY",
  "CANCELLED",
  "PENDING",
  "COMPLETED",
];

export function GraphView(props: Props) {
  const {
    graph,
    statuses = NO_STATUSES,
    selected = null,
    onSelect,
    onToggle,
    path = NOTHING,
    noteOf,
    label,
  } = props;
  const isDim = props.isDim ?? never;
  const layout = useLayout(graph.topology, () => layoutInput(graph));
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const layer = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  const [shown, setShown] = useState<GraphItem[]>([]);
  const scene = useRef<Scene | null>(null);
  const frameTimer = useRef(0);
  const statusOf = useCallback(
    (item: GraphItem): NodeStatus | null =>
      item.kind === "node"
        ? (statuses.get(item.id) ?? item.status)
        : (WORST.find((each) => (item.counts[each] ?? 0) > 0) ?? null),
    [statuses],
  );

  const draw = useCallback((camera: Camera) => {
    if (layer.current)
      layer.current.style.transform = `translate(${camera.x}px,${camera.y}px) scale(${camera.k})`;
    frameTimer.current ||= requestAnimationFrame(() => {
      frameTimer.current = 0;
      const now = scene.current;
      if (!now || !canvas.current || !frame.current) return;
      const at = latest.current;
      paint(canvas.current, now, at);
      const { clientWidth: width, clientHeight: height } = frame.current;
      const items =
        at.k < FAR
          ? []
          : now.graph.items.filter((item) => {
              const place = now.layout.places.get(item.key);
              return place && visible(place, at, width, height, MARGIN);
            });
      setShown((before) =>
        before.length === items.length && before.every((item, index) => item === items[index])
          ? before
          : items,
      );
    });
    latest.current = camera;
  }, []);
  const latest = useRef<Camera>({ x: 0, y: 0, k: 1 });
  const { camera, zoom, fit, move, moving, handlers } = useCamera(frame, draw);

  // A new graph or layout, other statuses, another theme: drawn anew where one looks.
  useEffect(() => {
    scene.current = layout && { graph, layout, statusOf, isDim, selected, path };
    draw(camera.current);
  }, [graph, layout, statusOf, isDim, selected, path, theme, draw, camera]);

  // The first layout is shown whole; from then on one looks where one looks, and an item that was clicked stays where it is.
  const fitted = useRef<string | null>(null);
  const anchor = useRef<{ id: string; x: number; y: number } | null>(null);
  useEffect(() => {
    if (!layout || layout.places.size === 0) return;
    const { digest } = graph.record;
    if (fitted.current !== digest) {
      fitted.current = digest;
      fit({ x: 0, y: 0, w: layout.width, h: layout.height });
      // Words that cannot be read help nobody: begin at the left, where the run does.
      if (camera.current.k < 0.5) {
        const height = frame.current!.clientHeight;
        draw({ x: 32, y: height / 2 - (layout.height / 2) * 0.6, k: 0.6 });
        camera.current = { x: 32, y: height / 2 - (layout.height / 2) * 0.6, k: 0.6 };
      }
    } else if (anchor.current) {
      const item = graph.byId.get(anchor.current.id);
      const place = item && layout.places.get(item.key);
      if (place) {
        const { k } = camera.current;
        const next = { k, x: anchor.current.x - place.x * k, y: anchor.current.y - place.y * k };
        camera.current = next;
        draw(next);
      }
      anchor.current = null;
    }
  }, [layout, graph, fit, draw, camera]);

  // A frame that changes its size shows as much more or less.
  useEffect(() => {
    const watcher = new ResizeObserver(() => draw(camera.current));
    watcher.observe(frame.current!);
    return () => watcher.disconnect();
  }, [draw, camera]);

  const toggle = useCallback(
    (group: GraphGroup) => {
      const place = layout?.places.get(group.key);
      const { x, y, k } = camera.current;
      if (place) anchor.current = { id: group.id, x: place.x * k + x, y: place.y * k + y };
      onToggle?.(group.id);
    },
    [layout, onToggle, camera],
  );

  const show = useCallback(
    (item: GraphItem) => {
      const place = layout?.places.get(item.key);
      if (!place || !frame.current) return;
      const { x, y, k } = camera.current;
      const { clientWidth: width, clientHeight: height } = frame.current;
      const inside =
        place.x * k + x > 0 &&
        (place.x + place.w) * k + x < width &&
        place.y * k + y > 0 &&
        (place.y + place.h) * k + y < height;
      if (!inside || k < FAR)
        fit({ x: place.x - 250, y: place.y - 150, w: place.w + 500, h: place.h + 300 }, 0.9);
    },
    [layout, fit, camera],
  );
  // What is selected elsewhere, as in the table or by a search, comes into sight.
  useEffect(() => {
    const item = selected === null ? undefined : graph.byId.get(selected);
    if (item) show(item);
  }, [selected, graph.byId, show]);

  const keyed = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget || event.metaKey || event.ctrlKey) return;
    const item = selected === null ? undefined : graph.byId.get(selected);
    const go = step(graph, layout, item, event.key);
    if (go) {
      onSelect?.(go.id);
    } else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0" && layout) fit({ x: 0, y: 0, w: layout.width, h: layout.height });
    else if (event.key === "Enter" && item?.kind === "group") toggle(item);
    else if (event.key.startsWith("Arrow")) {
      move(
        { ArrowLeft: 80, ArrowRight: -80 }[event.key] ?? 0,
        { ArrowUp: 80, ArrowDown: -80 }[event.key] ?? 0,
      );
    } else return;
    event.preventDefault();
  };

  /** From afar there is nothing to click but the canvas. */
  const clicked = (event: React.MouseEvent) => {
    if (camera.current.k >= FAR || !layout) return;
    const box = frame.current!.getBoundingClientRect();
    const { x, y, k } = camera.current;
    const [px, py] = [(event.clientX - box.left - x) / k, (event.clientY - box.top - y) / k];
    const hit = [...graph.items].reverse().find((item) => {
      const place = layout.places.get(item.key);
      return place && px >= place.x && px <= place.x + place.w && py >= place.y && py <= place.y + place.h;
    });
    if (hit) onSelect?.(hit.id);
  };

  return (
    <div
      ref={frame}
      role="application"
      aria-label={label}
      aria-busy={layout === null}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the graph is moved through by keys
      tabIndex={0}
      onKeyDown={keyed}
      onClick={clicked}
      className={clsx(
        "relative min-h-0 flex-1 touch-none overflow-hidden bg-canvas outline-offset-[-2px]",
        moving ? "cursor-grabbing" : "cursor-grab",
      )}
      {...handlers}
    >
      <canvas ref={canvas} className="absolute inset-0 size-full" />
      <div ref={layer} className="absolute top-0 left-0 origin-top-left">
        {layout &&
          shown.map((item) => {
            const place = layout.places.get(item.key);
            if (!place) return null;
            return item.kind === "node" ? (
              <Node
                key={item.id}
                node={item}
                place={place}
                status={statusOf(item)}
                selected={item.id === selected}
                dim={isDim(item)}
                note={noteOf?.(item)}
                onSelect={onSelect}
              />
            ) : (
              <Group
                key={item.id}
                group={item}
                place={place}
                selected={item.id === selected}
                dim={isDim(item)}
                onToggle={toggle}
              />
            );
          })}
      </div>
      <div className="absolute right-3 bottom-3 flex flex-col rounded-lg border border-line bg-raised shadow-sm">
        <IconButton label="Closer (+)" onClick={() => zoom(1.3)}>
          <Plus size={15} />
        </IconButton>
        <IconButton label="Further away (-)" onClick={() => zoom(1 / 1.3)}>
          <Minus size={15} />
        </IconButton>
        <IconButton
          label="All of it (0)"
          onClick={() => layout && fit({ x: 0, y: 0, w: layout.width, h: layout.height })}
        >
          <Maximize size={14} />
        </IconButton>
      </div>
      {props.tools && <div className="absolute top-3 left-3 flex flex-wrap gap-2">{props.tools}</div>}
    </div>
  );
}

const never = () => false;

/** Where an arrow leads from an item: along the edges sideways, within the column up and down. */
function step(
  graph: Graph,
  layout: Layout | null,
  item: GraphItem | undefined,
  key: string,
): GraphItem | undefined {
  if (!layout || !key.startsWith("Arrow")) return undefined;
  if (!item) return key === "ArrowRight" ? graph.items[0] : undefined;
  const here = layout.places.get(item.key)!;
  const far = (place: Place) => Math.abs(place.y - here.y) + Math.abs(place.x - here.x) / 1_000;
  const nearest = (keys: number[]) =>
    keys
      .filter((each) => layout.places.has(each))
      .sort((a, b) => far(layout.places.get(a)!) - far(layout.places.get(b)!))[0];
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const { before, after } = neighbours(graph, item.key);
    const next = nearest(key === "ArrowLeft" ? before : after);
    return next === undefined ? undefined : graph.items[next];
  }
  const column = graph.items.filter((each) => {
    const place = layout.places.get(each.key);
    return (
      place && Math.abs(place.x - here.x) < 8 && (key === "ArrowUp" ? place.y < here.y : place.y > here.y)
    );
  });
  const next = nearest(column.map((each) => each.key));
  return next === undefined ? undefined : graph.items[next];
}

type NodeProps = {
  node: GraphNode;
  place: Place;
  status: NodeStatus | null;
  selected: boolean;
  dim: boolean;
  note: ReactNode;
  onSelect?: (id: string | null) => void;
};

const Node = memo(function Node({ node, place, status, selected, dim, note, onSelect }: NodeProps) {
  return (
    <button
      type="button"
      tabIndex={-1}
      data-node={node.id}
      data-status={status ?? "PENDING"}
      aria-pressed={selected}
      title={`${node.name}${status ? `: ${words(status)}` : ""}`}
      onClick={() => onSelect?.(node.id)}
      className={clsx(
        "absolute flex items-center gap-2 overflow-hidden rounded-lg border border-l-[3px] border-l-[var(--st)] bg-raised px-2.5 text-left shadow-xs hover:border-[var(--st)]",
        selected && "ring-2 ring-[var(--focus)]",
        dim && "opacity-25",
      )}
      style={{ left: place.x, top: place.y, width: place.w, height: place.h }}
    >
      {status && (
        <span
          aria-hidden="true"
          className={clsx(
            "w-3.5 shrink-0 text-center text-[13px] text-[var(--st)]",
            status === "RUNNING" && "animate-pulse",
          )}
        >
          {symbolOf(status)}
        </span>
      )}
      <span className="min-w-0 flex-1">
        <span className="block truncate text-[13px] font-medium">{node.name}</span>
        {note != null && <span className="block truncate text-2xs text-ink-3">{note}</span>}
      </span>
    </button>
  );
});

type GroupProps = {
  group: GraphGroup;
  place: Place;
  selected: boolean;
  dim: boolean;
  onToggle: (group: GraphGroup) => void;
};

const Group = memo(function Group({ group, place, selected, dim, onToggle }: GroupProps) {
  const counted = Object.values(group.counts).some((count) => (count ?? 0) > 0);
  const failed = (group.counts.FAILED ?? 0) + (group.counts.INTERRUPTED ?? 0);
  const Chevron = group.open ? ChevronDown : ChevronRight;
  const head = (
    <>
      <Chevron size={14} className="shrink-0 text-ink-3" />
      <span className="min-w-0 flex-1 truncate text-[13px] font-medium">{group.name}</span>
      {failed > 0 && (
        <span data-status="FAILED" className="text-2xs font-semibold text-[var(--st)]">
          ✗ {failed.toLocaleString()}
        </span>
      )}
      <span className="text-2xs text-ink-3 tabular">{group.size.toLocaleString()}</span>
    </>
  );
  const box = { left: place.x, top: place.y, width: place.w, height: place.h };
  if (group.open) {
    return (
      <div
        className={clsx("absolute rounded-xl border border-dashed border-line-strong", dim && "opacity-25")}
        style={box}
      >
        <button
          type="button"
          tabIndex={-1}
          data-group={group.id}
          aria-expanded="true"
          onClick={() => onToggle(group)}
          className="flex h-7 w-full items-center gap-1.5 px-2.5 text-left hover:text-accent"
        >
          {head}
        </button>
      </div>
    );
  }
  return (
    <button
      type="button"
      tabIndex={-1}
      data-group={group.id}
      aria-expanded="false"
      title={`${group.name}: open these ${group.size.toLocaleString()}`}
      onClick={() => onToggle(group)}
      className={clsx(
        "absolute flex flex-col justify-center gap-1.5 rounded-lg border border-line-strong bg-raised px-2.5 text-left shadow-[3px_3px_0_var(--line),6px_6px_0_var(--hover)] hover:border-accent",
        selected && "ring-2 ring-[var(--focus)]",
        dim && "opacity-25",
      )}
      style={box}
    >
      <span className="flex items-center gap-1.5">{head}</span>
      {counted && <StatusBar counts={group.counts} />}
    </button>
  );
});
