/**
 * A graph of any size. Edges are on a canvas; items are elements of the page, but only those that can be seen and read, so that there
 * are never many. Statuses change items and nothing else: the layout depends on the topology alone.
 */

import clsx from "clsx";
import { Maximize, Minus, Plus } from "lucide-react";
import {
  type KeyboardEvent,
  type ReactNode,
  useCallback,
  useEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { reasonWords } from "@/api/reasons";
import { isBroken, type NodeStatus, words } from "@/api/tables";
import { useTheme } from "@/shell/theme";
import { IconButton } from "@/ui/button";
import { Failure } from "@/ui/states";
import { type Camera, useCamera } from "./camera";
import { Group, Node } from "./items";
import type { Graph, GraphGroup, GraphItem, GraphNode } from "./model";
import { FAR, type Mark, paint, type Scene, visible } from "./paint";
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
  /** How items are drawn, if not by their status. */
  markOf?: (item: GraphItem) => Mark | null;
  /** What stands below the name of a node. */
  noteOf?: (node: GraphNode) => ReactNode;
  label: string;
  tools?: ReactNode;
};

const NOTHING: ReadonlySet<string> = new Set();
/** From here on words are not worth reading: rather a part of the graph. */
const READABLE = 0.5;
const narrow = matchMedia("(max-width: 639px)");

const useNarrow = () =>
  useSyncExternalStore(
    (listener) => {
      narrow.addEventListener("change", listener);
      return () => narrow.removeEventListener("change", listener);
    },
    () => narrow.matches,
  );
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
  "SKIPPED",
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
  const markOf = props.markOf ?? unmarked;
  const isDown = useNarrow();
  const { drawn, error, retry } = useLaidOut(props.graph, isDown);
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
  const tools = useRef<HTMLDivElement>(null);
  const covered = useCallback(() => {
    const over = tools.current;
    return over && getComputedStyle(over).position === "absolute" ? over.offsetTop + over.offsetHeight : 0;
  }, []);
  const { camera, zoom, fit, move, moving, dragged, touched, handlers } = useCamera(frame, draw, covered);

  /** Whether a part is shown because something in it was selected. */
  const isPart = useRef(false);
  /** All of it; if its words could not be read, what failed first, or where the run begins. */
  const showWhole = useCallback(() => {
    if (!layout || !frame.current) return;
    touched.current = false;
    isPart.current = false;
    fit({ x: 0, y: 0, w: layout.width, h: layout.height });
    if (camera.current.k >= READABLE) return;
    const failed = graph.items.find((item) => {
      const status = statusOf(item);
      return status !== null && isBroken(status) && !(item.kind === "group" && item.open);
    });
    const place = failed && layout.places.get(failed.key);
    const { clientWidth: width, clientHeight: height } = frame.current;
    const top = covered();
    const [x, y] = place
      ? [place.x + place.w / 2, place.y + place.h / 2]
      : layout.isDown
        ? [layout.width / 2, (height - top) / 2 / 0.6 - 24]
        : [width / 2 / 0.6 - 48, layout.height / 2];
    camera.current = { k: 0.6, x: width / 2 - x * 0.6, y: top + (height - top) / 2 - y * 0.6 };
    draw(camera.current);
  }, [layout, graph, statusOf, fit, draw, camera, touched, covered]);
  const whole = useRef(showWhole);
  whole.current = showWhole;

  // A new graph or layout, other statuses, another theme: drawn anew where one looks.
  useEffect(() => {
    scene.current = layout && { graph, layout, statusOf, markOf, isDim, selected, path };
    draw(camera.current);
  }, [graph, layout, statusOf, markOf, isDim, selected, path, theme, draw, camera]);

  // The first layout is shown whole; from then on one looks where one looks, and an item that was clicked stays where it is.
  const fitted = useRef<string | null>(null);
  const anchor = useRef<{ id: string; x: number; y: number } | null>(null);
  useEffect(() => {
    if (!layout || layout.places.size === 0) return;
    const frameOf = `${graph.record.digest} ${graph.isPart} ${layout.isDown}`;
    if (fitted.current !== frameOf) {
      fitted.current = frameOf;
      whole.current();
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
  }, [layout, graph, draw, camera]);

  const toggle = useCallback(
    (group: GraphGroup) => {
      const place = layout?.places.get(group.key);
      const { x, y, k } = camera.current;
      if (place) anchor.current = { id: group.id, x: place.x * k + x, y: place.y * k + y };
      touched.current = true;
      onToggle?.(group.id);
    },
    [layout, onToggle, camera, touched],
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
        place.y * k + y > covered() &&
        (place.y + place.h) * k + y < height;
      if (inside && k >= FAR) return;
      isPart.current = true;
      const [dx, dy] = layout?.isDown ? [60, 90] : [250, 150];
      fit({ x: place.x - dx, y: place.y - dy, w: place.w + 2 * dx, h: place.h + 2 * dy }, 0.9);
    },
    [layout, fit, camera, covered],
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

  // A frame of another size, as beside a panel that opens: all of it again, unless somebody looks at a part, or all of it could not
  // be read; and what is selected.
  const resized = useRef(() => {});
  resized.current = () => {
    const box = frame.current!;
    const isReadable =
      layout !== null &&
      Math.min(box.clientWidth / layout.width, (box.clientHeight - covered()) / layout.height) > READABLE;
    if (touched.current || (isPart.current && !isReadable)) draw(camera.current);
    else whole.current();
    const item = selected === null ? undefined : graph.byId.get(selected);
    if (item) show(item);
  };
  useEffect(() => {
    const watcher = new ResizeObserver(() => resized.current());
    watcher.observe(frame.current!);
    return () => watcher.disconnect();
  }, []);

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
    else if (event.key === "0") showWhole();
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

  const zooming = (
    <>
      <IconButton label="Closer (+)" onClick={() => zoom(1.3)}>
        <Plus size={15} />
      </IconButton>
      <IconButton label="Further away (-)" onClick={() => zoom(1 / 1.3)}>
        <Minus size={15} />
      </IconButton>
      <IconButton label="All of it (0)" onClick={showWhole}>
        <Maximize size={14} />
      </IconButton>
    </>
  );
  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      {/* On narrow screens nothing lies over the graph. */}
      <div
        ref={tools}
        className="flex flex-wrap items-center gap-2 border-b border-line bg-paper px-3 py-2 sm:absolute sm:top-3 sm:left-3 sm:z-10 sm:border-0 sm:bg-transparent sm:p-0"
      >
        {props.tools}
        <span className="flex rounded-lg border border-line bg-raised sm:hidden">{zooming}</span>
      </div>
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
                  mark={markOf(item)}
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
        <div className="absolute right-3 bottom-3 hidden flex-col rounded-lg border border-line bg-raised shadow-sm sm:flex">
          {zooming}
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
      </div>
    </div>
  );
}

const never = () => false;
const unmarked = () => null;

/** What is said aloud of an item that keys lead to. */
function describe(item: GraphItem | undefined, statusOf: (item: GraphItem) => NodeStatus | null) {
  if (!item) return "";
  const status = statusOf(item);
  if (item.kind === "node") {
    const reason = status === "SKIPPED" && item.reason ? `: ${reasonWords(item.reason)}` : "";
    return `${item.name}${status ? `, ${words(status)}${reason}` : ""}`;
  }
  const counts = Object.entries(item.counts).map(([each, count]) => `${count} ${words(each)}`);
  const state = item.open ? "open" : "closed: Enter opens it";
  return `${item.name}, group of ${item.size} nodes, ${[...counts, state].join(", ")}`;
}
