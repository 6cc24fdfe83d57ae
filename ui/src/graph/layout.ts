/**
 * Where the items of a graph are drawn: columns by level, from left to right. A group that is open is laid out first and is then
 * one large item of the graph around it. Every step is linear in items and edges, apart from sorting within columns.
 */

export type Item = {
  /** Its place in the arrays of the graph: nodes first, then groups. */
  key: number;
  level: number;
  /** Its place among what is declared. */
  order: number;
  /** The open group it is in, by its key. */
  group: number | null;
  /** Whether it is a group whose items are shown. */
  open: boolean;
};

/** `isDown`: levels follow each other from above, as narrow screens have room for, and not from the left. */
export type Input = { items: Item[]; edges: [from: number, to: number][]; isDown?: boolean };
export type Place = { x: number; y: number; w: number; h: number };
export type Layout = { places: Map<number, Place>; width: number; height: number; isDown: boolean };

export const NODE = { w: 208, h: 48 };
export const HEAD = 30;
const GAP = { x: 64, y: 14 };
const PAD = 14;
const SWEEPS = 4;
const GRID_FROM = 9;

type Box = { item: Item; w: number; h: number; y: number };

export function layout({ items, edges, isDown = false }: Input): Layout {
  const inside = new Map<number | null, Item[]>();
  for (const item of items) {
    const siblings = inside.get(item.group);
    if (siblings) siblings.push(item);
    else inside.set(item.group, [item]);
  }
  const byKey = new Map(items.map((item) => [item.key, item]));
  const places = new Map<number, Place>();
  const between = liftedEdges(byKey, edges);

  // From above it is the same with both directions exchanged, and so are the sizes of what is arranged.
  const leaf = isDown ? { w: NODE.h, h: NODE.w } : NODE;
  const [before, beside] = isDown ? [HEAD, PAD] : [PAD, HEAD];
  const arrange = (
    container: number | null,
  ): { w: number; h: number; put: (x: number, y: number) => void } => {
    const members = inside.get(container) ?? [];
    const inner = new Map<number, ReturnType<typeof arrange>>();
    const boxes = members.map((item): Box => {
      if (!item.open) return { item, ...leaf, y: 0 };
      const own = arrange(item.key);
      inner.set(item.key, own);
      return { item, w: own.w + before + PAD, h: own.h + beside + PAD, y: 0 };
    });
    const own = between.get(container) ?? [];
    const spots = own.length === 0 && boxes.length >= GRID_FROM ? grid(boxes) : columns(boxes, own);
    return {
      w: spots.w,
      h: spots.h,
      put: (x, y) => {
        for (const { box, x: dx, y: dy } of spots.at) {
          places.set(box.item.key, { x: x + dx, y: y + dy, w: box.w, h: box.h });
          inner.get(box.item.key)?.put(x + dx + before, y + dy + beside);
        }
      },
    };
  };
  const whole = arrange(null);
  whole.put(0, 0);
  const laid = { places, width: whole.w, height: whole.h, isDown };
  return isDown ? turned(laid) : laid;
}

/** With both directions exchanged. */
export const turned = ({ places, width, height, isDown }: Layout): Layout => ({
  places: new Map([...places].map(([key, { x, y, w, h }]) => [key, { x: y, y: x, w: h, h: w }])),
  width: height,
  height: width,
  isDown,
});

type Spots = { w: number; h: number; at: { box: Box; x: number; y: number }[] };

/** Items that do not depend on each other, such as those of a fan: rows and columns, about as wide as high. */
function grid(boxes: Box[]): Spots {
  const sorted = [...boxes].sort((a, b) => a.item.order - b.item.order || a.item.key - b.item.key);
  const w = Math.max(...sorted.map((box) => box.w));
  const h = Math.max(...sorted.map((box) => box.h));
  const across = Math.ceil(Math.sqrt((sorted.length * (h + GAP.y)) / (w + GAP.y)));
  const at = sorted.map((box, index) => ({
    box,
    x: (index % across) * (w + GAP.y),
    y: Math.floor(index / across) * (h + GAP.y),
  }));
  const down = Math.ceil(sorted.length / across);
  return { w: across * (w + GAP.y) - GAP.y, h: down * (h + GAP.y) - GAP.y, at };
}

function columns(boxes: Box[], edges: [number, number][]): Spots {
  if (boxes.length === 0) return { w: NODE.w, h: NODE.h, at: [] };
  const levels = [...new Set(boxes.map((box) => box.item.level))].sort((a, b) => a - b);
  const columnOf = new Map(levels.map((level, index) => [level, index]));
  const table: Box[][] = levels.map(() => []);
  for (const box of boxes) table[columnOf.get(box.item.level)!]!.push(box);
  for (const column of table) column.sort((a, b) => a.item.order - b.item.order || a.item.key - b.item.key);

  const byKey = new Map(boxes.map((box) => [box.item.key, box]));
  const before = new Map<Box, Box[]>(boxes.map((box) => [box, []]));
  const after = new Map<Box, Box[]>(boxes.map((box) => [box, []]));
  for (const [from, to] of edges) {
    const [a, b] = [byKey.get(from)!, byKey.get(to)!];
    before.get(b)!.push(a);
    after.get(a)!.push(b);
  }
  // Few crossings: each item near the middle of those it depends on, and then of those that depend on it.
  const rank = new Map<Box, number>();
  const ranked = (column: Box[]) => column.forEach((box, index) => void rank.set(box, index / column.length));
  for (const column of table) ranked(column);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const column of down ? table : [...table].reverse()) {
      const near = down ? before : after;
      const wish = new Map(
        column.map((box) => [box, mean(near.get(box)!.map((each) => rank.get(each)!)) ?? rank.get(box)!]),
      );
      column.sort((a, b) => wish.get(a)! - wish.get(b)! || a.item.order - b.item.order);
      ranked(column);
    }
  }
  for (const column of table) stack(column, () => null);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const column of down ? table : [...table].reverse()) {
      const near = down ? before : after;
      stack(column, (box) => mean(near.get(box)!.map((each) => each.y + each.h / 2)));
    }
  }
  const top = Math.min(...boxes.map((box) => box.y));
  const at: Spots["at"] = [];
  let x = 0;
  for (const column of table) {
    const widest = Math.max(...column.map((box) => box.w));
    for (const box of column) at.push({ box, x: x + (widest - box.w) / 2, y: box.y - top });
    x += widest + GAP.x;
  }
  return { w: x - GAP.x, h: Math.max(...boxes.map((box) => box.y + box.h)) - top, at };
}

/**
 * Places a column in its order, without overlaps, as near as possible to where each item wants its middle (least squares: blocks
 * that would overlap are merged and share the mean of what they want).
 */
function stack(column: Box[], wish: (box: Box) => number | null) {
  const blocks: { boxes: Box[]; top: number; height: number; sum: number; count: number }[] = [];
  let bottom = 0;
  for (const box of column) {
    const middle = wish(box);
    const top = middle === null ? (blocks.length === 0 ? box.y : bottom + GAP.y) : middle - box.h / 2;
    let block = { boxes: [box], top, height: box.h, sum: top, count: 1 };
    let last = blocks.at(-1);
    while (last && last.top + last.height + GAP.y > block.top) {
      blocks.pop();
      const shift = last.height + GAP.y;
      const sum = last.sum + block.sum - block.count * shift;
      const count = last.count + block.count;
      block = {
        boxes: [...last.boxes, ...block.boxes],
        top: sum / count,
        height: shift + block.height,
        sum,
        count,
      };
      last = blocks.at(-1);
    }
    blocks.push(block);
    bottom = block.top + block.height;
  }
  for (const block of blocks) {
    let y = block.top;
    for (const box of block.boxes) {
      box.y = y;
      y += box.h + GAP.y;
    }
  }
}

const mean = (values: number[]) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : null);

/** Edges between items of the same container: one that leads into an open group is one to that group. */
function liftedEdges(byKey: Map<number, Item>, edges: [number, number][]) {
  const path = new Map<number | null, number[]>([[null, []]]);
  const pathOf = (key: number): number[] => {
    const known = path.get(key);
    if (known) return known;
    const { group } = byKey.get(key)!;
    const found = [...(group === null ? [] : pathOf(group)), key];
    path.set(key, found);
    return found;
  };
  const between = new Map<number | null, [number, number][]>();
  const seen = new Set<string>();
  for (const [from, to] of edges) {
    const [a, b] = [pathOf(from), pathOf(to)];
    let depth = 0;
    while (a[depth] === b[depth] && depth < a.length) depth++;
    const edge: [number, number] = [a[depth]!, b[depth]!];
    const name = `${edge[0]} ${edge[1]}`;
    if (edge[0] === undefined || edge[1] === undefined || seen.has(name)) continue;
    seen.add(name);
    const container = depth === 0 ? null : a[depth - 1]!;
    const own = between.get(container);
    if (own) own.push(edge);
    else between.set(container, [edge]);
  }
  return between;
}
