/** Draws edges, and, from afar, the items themselves: one canvas, whatever the size of the graph. */

import { type NodeStatus, symbolOf } from "@/api/tables";
import type { Camera } from "./camera";
import type { Layout, Place } from "./layout";
import type { Graph, GraphItem } from "./model";

/** From here on items are drawn as boxes without words: smaller ones could not be read. */
export const FAR = 0.42;

/** Pixels: in lower boxes a symbol could not be told from another. */
const SYMBOL_FROM = 7;

/** What is shown of an item instead of its status: the name of a look in the style sheet, a symbol, and words. */
export type Mark = { look: keyof typeof LOOKS; symbol: string; words: string };

export type Scene = {
  graph: Graph;
  layout: Layout;
  statusOf: (item: GraphItem) => NodeStatus | null;
  markOf: (item: GraphItem) => Mark | null;
  isDim: (item: GraphItem) => boolean;
  selected: string | null;
  /** Edges of the critical path, as `from to`. */
  path: ReadonlySet<string>;
};

let colours: Record<string, string> = {};
let coloursOf = "";

/** The colours of the theme, by their names in the style sheet. */
function colour(name: string): string {
  const theme = document.documentElement.dataset.theme ?? "";
  if (theme !== coloursOf) {
    colours = {};
    coloursOf = theme;
  }
  colours[name] ??= getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return colours[name];
}

const STATUS: Partial<Record<NodeStatus, string>> = {
  READY: "--st-ready",
  RUNNING: "--st-running",
  WAITING: "--st-waiting",
  COMPLETED: "--st-completed",
  FAILED: "--st-failed",
  UPSTREAM_FAILED: "--st-upstream",
  SKIPPED: "--st-skipped",
  CANCELLED: "--st-cancelled",
  INTERRUPTED: "--st-interrupted",
};

/** From an item to another one, by the passages between them. */
type Way = readonly Place[];
const DASH = [5, 4];
const DIAMOND = 6;

type Lines = Record<"plain" | "conditional" | "unused" | "critical" | "own", Way[]> & { diamonds: Place[] };
const linesOf = new WeakMap<Scene, Lines>();

/**
 * What is drawn of edges, found once for a scene and not for each frame in which it is moved. Edges into nodes with a condition are
 * dashed, and so are those that led to nothing, because one of their nodes was skipped.
 */
function lines(scene: Scene): Lines {
  const known = linesOf.get(scene);
  if (known) return known;
  const { graph, layout, statusOf, path } = scene;
  const found: Lines = { plain: [], conditional: [], unused: [], critical: [], own: [], diamonds: [] };
  const chosen = graph.byId.get(scene.selected ?? "")?.key;
  const skipped = new Set<number>();
  const conditional = new Set<number>();
  for (const item of graph.items) {
    if (item.kind === "group") continue;
    if (statusOf(item) === "SKIPPED") skipped.add(item.key);
    if (item.condition === null) continue;
    conditional.add(item.key);
    const place = layout.places.get(item.key);
    if (place) found.diamonds.push(place);
  }
  for (const [from, to] of graph.edges) {
    const [a, b] = [layout.places.get(from), layout.places.get(to)];
    if (!a || !b) continue;
    const name = `${from} ${to}`;
    const way = [a, ...(layout.passages.get(name) ?? []), b];
    const kind =
      skipped.has(from) || skipped.has(to) ? "unused" : conditional.has(to) ? "conditional" : "plain";
    found[kind].push(way);
    if (path.has(name)) found.critical.push(way);
    if (from === chosen || to === chosen) found.own.push(way);
  }
  linesOf.set(scene, found);
  return found;
}

const LOOKS = { DIFFERS: "--st-failed", ADDED: "--st-running", SAME: "--st-skipped" } as const;

export const visible = (place: Place, camera: Camera, width: number, height: number, margin = 0) =>
  place.x * camera.k + camera.x < width + margin &&
  (place.x + place.w) * camera.k + camera.x > -margin &&
  place.y * camera.k + camera.y < height + margin &&
  (place.y + place.h) * camera.k + camera.y > -margin;

export function paint(canvas: HTMLCanvasElement, scene: Scene, camera: Camera) {
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
    canvas.width = width * ratio;
    canvas.height = height * ratio;
  }
  const pen = canvas.getContext("2d")!;
  const { graph, layout } = scene;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.setTransform(ratio * camera.k, 0, 0, ratio * camera.k, ratio * camera.x, ratio * camera.y);
  const from = { x: -camera.x / camera.k, y: -camera.y / camera.k };
  const to = { x: (width - camera.x) / camera.k, y: (height - camera.y) / camera.k };

  const curve = (a: Place, b: Place) => {
    const [x1, y1, x2, y2] = layout.isDown
      ? [a.x + a.w / 2, a.y + a.h, b.x + b.w / 2, b.y]
      : [a.x + a.w, a.y + a.h / 2, b.x, b.y + b.h / 2];
    if (Math.max(x1, x2) < from.x || Math.min(x1, x2) > to.x) return;
    if (Math.max(y1, y2) < from.y || Math.min(y1, y2) > to.y) return;
    pen.moveTo(x1, y1);
    const bend = Math.max(24, (layout.isDown ? y2 - y1 : x2 - x1) / 2);
    if (layout.isDown) pen.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2);
    else pen.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
  };
  const draw = (ways: readonly Way[], style: string, thickness: number, dash: number[] = []) => {
    if (ways.length === 0) return;
    pen.beginPath();
    for (const way of ways) {
      for (let at = 1; at < way.length; at++) {
        curve(way[at - 1]!, way[at]!);
        // Straight through the columns in between, where there is room.
        if (at === way.length - 1) continue;
        const { x, y, w, h } = way[at]!;
        pen.moveTo(x, y);
        pen.lineTo(x + w, y + h);
      }
    }
    pen.strokeStyle = style;
    pen.lineWidth = thickness;
    pen.setLineDash(dash);
    pen.stroke();
    pen.setLineDash([]);
  };
  /** Where the edges of a node with a condition end. */
  const diamond = ({ x, y, w, h }: Place) => {
    const [cx, cy] = layout.isDown ? [x + w / 2, y - DIAMOND] : [x - DIAMOND, y + h / 2];
    pen.beginPath();
    pen.moveTo(cx - DIAMOND, cy);
    pen.lineTo(cx, cy - DIAMOND);
    pen.lineTo(cx + DIAMOND, cy);
    pen.lineTo(cx, cy + DIAMOND);
    pen.closePath();
    pen.fillStyle = colour("--paper");
    pen.fill();
    pen.strokeStyle = colour("--ink-3");
    pen.lineWidth = 1.2;
    pen.stroke();
  };
  const thin = Math.max(1, 0.8 / camera.k);
  const { plain, conditional, unused, critical, own, diamonds } = lines(scene);
  draw(plain, colour("--line-strong"), thin);
  draw(conditional, colour("--ink-3"), thin, DASH);
  draw(unused, colour("--line-strong"), thin, DASH);
  draw(critical, colour("--st-waiting"), Math.max(2.5, 2 / camera.k));
  draw(own, colour("--accent"), Math.max(2, 1.5 / camera.k));
  if (camera.k >= FAR) {
    diamonds.forEach(diamond);
    return;
  }
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (const item of graph.items) {
    const place = layout.places.get(item.key);
    if (!place || !visible(place, camera, width, height)) continue;
    const status = scene.statusOf(item);
    const mark = scene.markOf(item);
    const style = colour(mark ? LOOKS[mark.look] : (status && STATUS[status]) || "--st-pending");
    const symbol = mark?.symbol ?? (status && symbolOf(status));
    pen.globalAlpha = scene.isDim(item) ? 0.3 : status === "SKIPPED" ? 0.5 : 1;
    if (item.kind === "group" && item.open) {
      pen.strokeStyle = colour("--line-strong");
      pen.lineWidth = 2 / camera.k;
      pen.strokeRect(place.x, place.y, place.w, place.h);
    } else {
      pen.fillStyle = style;
      pen.fillRect(place.x, place.y, place.w, place.h);
      if (symbol && place.h * camera.k >= SYMBOL_FROM) {
        pen.fillStyle = colour("--paper");
        pen.font = `${place.h * 0.7}px sans-serif`;
        pen.fillText(symbol, place.x + place.w / 2, place.y + place.h / 2);
      }
    }
    if (item.id === scene.selected) {
      pen.strokeStyle = colour("--accent");
      pen.lineWidth = Math.min(4 / camera.k, place.h * 0.4);
      pen.strokeRect(place.x, place.y, place.w, place.h);
    }
    pen.globalAlpha = 1;
  }
}
