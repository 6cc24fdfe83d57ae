/**
 * A graph of any size. Edges are on a canvas; items are elements of the page, but only those that can be seen and read, so that there
 * are never many. Statuses change items and nothing else: the layout depends on the topology alone.
 */

import clsx from "clsx";
import { Maximize, Minus, Plus } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useCallback, useEffect, useRef, useState } from "react";
import { type NodeStatus, words } from "@/api/tables";
import { useTheme } from "@/shell/theme";
import { IconButton } from "@/ui/button";
import { Failure } from "@/ui/states";
import { type Camera, useCamera } from "./camera";
import { Group, Node } from "./items";
import type { Graph, GraphGroup, GraphItem, GraphNode } from "./model";
import { FAR, paint, type Scene, visible } from "./paint";
import { step } from "./step";
import { useLaidOut } from "./use-layout";

type Props = {
  graph: Graph;
  /** The status of a node, where it is newer than that of the graph. */
  statuses?: ReadonlyMap<string, NodeStatus>;
  /** A node. */
  selected?: string | null;
  onSelect?: (node: string | null) => void;
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
    statuses = NO_STATUSES,
    selected: node = null,
    onSelect,
    onToggle,
    path = NOTHING,
    noteOf,
    label,
  } = props;
  const isDim = props.isDim ?? never;
  const { drawn, error, retry } = useLaidOut(props.graph);
  const graph = drawn?.graph ?? props.graph;
  const layout = drawn?.layout ?? null;
  // Keys lead over groups, too: a group is not what the page has selected, but where one is.
  const [cursor, setCursor] = useState<string | null>(null);
  useEffect(() => setCursor(null), [node]);
  const selected = cursor ?? node;
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const layer = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  const [shown, setShown] = useState<GraphItem[]>([]);
  const shownIds = useRef("");
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
      // Records of the same items come with every answer: only other items are a reason to render.
      const ids = items.map((item) => item.id).join("\n");
      if (ids !== shownIds.current) setShown(items);
      shownIds.current = ids;
    });
    latest.current = camera;
  }, []);
  const latest = useRef<Camera>({ x: 0, y: 0, k: 1 });
  const { camera, zoom, fit, move, moving, dragged, handlers } = useCamera(frame, draw);

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
    const frameOf = `${graph.record.digest} ${graph.isPart}`;
    if (fitted.current !== frameOf) {
      fitted.current = frameOf;
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
  // What is selected elsewhere, as in the table or by a search, comes into sight, once: from then on one looks where one looks.
  const shownFor = useRef<string | null>(null);
  useEffect(() => {
    if (selected === shownFor.current) return;
    const item = selected === null ? undefined : graph.byId.get(selected);
    if (selected !== null && !(item && layout?.places.has(item.key))) return;
    shownFor.current = selected;
    if (item) show(item);
  }, [selected, graph, layout, show]);

  const keyed = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget || event.metaKey || event.ctrlKey) return;
    const item = selected === null ? undefined : graph.byId.get(selected);
    const next = layout ? step(graph, layout, item, event.key) : undefined;
    if (next?.kind === "group") setCursor(next.id);
    else if (next) {
      setCursor(null);
      onSelect?.(next.id);
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
    if (camera.current.k >= FAR || !layout || dragged()) return;
    if ((event.target as HTMLElement).closest("button,input")) return;
    const box = frame.current!.getBoundingClientRect();
    const { x, y, k } = camera.current;
    const [px, py] = [(event.clientX - box.left - x) / k, (event.clientY - box.top - y) / k];
    // Nodes come first, and then closed groups: what is open lies behind what is in it.
    const hit = graph.items.find((item) => {
      if (item.kind === "group" && item.open) return false;
      const place = layout.places.get(item.key);
      return place && px >= place.x && px <= place.x + place.w && py >= place.y && py <= place.y + place.h;
    });
    if (hit?.kind === "group") toggle(hit);
    else if (hit) onSelect?.(hit.id);
  };

  return (
    <div
      ref={frame}
      role="application"
      aria-label={label}
      aria-busy={layout === null && error === null}
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
          shown.map(({ id }) => {
            const item = graph.byId.get(id);
            const place = item && layout.places.get(item.key);
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
      <p aria-live="polite" className="sr-only">
        {describe(selected === null ? undefined : graph.byId.get(selected), statusOf)}
      </p>
      {error && <Failure error={error} retry={retry} className="absolute inset-x-0 top-14" />}
      {graph.isPart && graph.items.length === 0 && (
        <p className="absolute inset-0 grid place-content-center text-[13px] text-ink-2">
          Everything here has succeeded.
        </p>
      )}
      {props.tools && <div className="absolute top-3 left-3 flex flex-wrap gap-2">{props.tools}</div>}
    </div>
  );
}

const never = () => false;

/** What is said aloud of an item that keys lead to. */
function describe(item: GraphItem | undefined, statusOf: (item: GraphItem) => NodeStatus | null) {
  if (!item) return "";
  const status = statusOf(item);
  if (item.kind === "node") return `${item.name}${status ? `, ${words(status)}` : ""}`;
  const counts = Object.entries(item.counts).map(([each, count]) => `${count} ${words(each)}`);
  const state = item.open ? "open" : "closed: Enter opens it";
  return `${item.name}, group of ${item.size} nodes, ${[...counts, state].join(", ")}`;
}
