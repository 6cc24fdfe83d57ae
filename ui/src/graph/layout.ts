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
/** `passages`: by `from to` of an edge, where it leads through the columns between its two items, past what is there. */
export type Layout = {
  places: Map<number, Place>;
  passages: Map<string, Place[]>;
  width: number;
  height: number;
  isDown: boolean;
};

export const NODE = { w: 208, h: 48 };
export const HEAD = 30;
const GAP = { x: 64, y: 14 };
const PAD = 14;
const SWEEPS = 4;
const GRID_FROM = 9;
const PASSAGE = { h: 2, gap: 5, gapToItem: 9, weight: 0.001 };
/** More passages than these, for each item, would make a graph larger than it is worth. */
const PASSAGES = 3;
const PASSAGES_AT_LEAST = 200;

/** What takes room in a column: an item, or a passage of edges that lead through it, which has none. */
type Box = { item: Item | null; order: number; w: number; h: number; y: number };

export function layout({ items, edges, isDown = false }: Input): Layout {
  const inside = new Map<number | null, Item[]>();
  for (const item of items) {
    const siblings = inside.get(item.group);
    if (siblings) siblings.push(item);
    else inside.set(item.group, [item]);
  }
  const byKey = new Map(items.map((item) => [item.key, item]));
  const places = new Map<number, Place>();
  const ways = new Map<string, Place[]>();
  const { between, liftedOf } = liftedEdges(byKey, edges);

  // From above it is the same with both directions exchanged, and so are the sizes of what is arranged.
  const leaf = isDown ? { w: NODE.h, h: NODE.w } : NODE;
  const [before, beside] = isDown ? [HEAD, PAD] : [PAD, HEAD];
  const arrange = (
    container: number | null,
  ): { w: number; h: number; put: (x: number, y: number) => void } => {
    const members = inside.get(container) ?? [];
    const inner = new Map<number, ReturnType<typeof arrange>>();
    const boxes = members.map((item): Box => {
      const { order } = item;
      if (!item.open) return { item, order, ...leaf, y: 0 };
      const own = arrange(item.key);
      inner.set(item.key, own);
      return { item, order, w: own.w + before + PAD, h: own.h + beside + PAD, y: 0 };
    });
    const own = between.get(container) ?? [];
    const spots = own.length === 0 && boxes.length >= GRID_FROM ? grid(boxes) : columns(boxes, own);
    return {
      w: spots.w,
      h: spots.h,
      put: (x, y) => {
        for (const { box, x: dx, y: dy } of spots.at) {
          const { key } = box.item!;
          places.set(key, { x: x + dx, y: y + dy, w: box.w, h: box.h });
          inner.get(key)?.put(x + dx + before, y + dy + beside);
        }
        for (const [edge, way] of spots.ways)
          ways.set(
            edge,
            way.map((place) => ({ ...place, x: x + place.x, y: y + place.y })),
          );
      },
    };
  };
  const whole = arrange(null);
  whole.put(0, 0);
  const passages = new Map<string, Place[]>();
  for (const [edge, lifted] of liftedOf) {
    const way = ways.get(lifted);
    if (way) passages.set(edge, way);
  }
  const laid = { places, passages, width: whole.w, height: whole.h, isDown };
  return isDown ? turned(laid) : laid;
}

const turnedPlace = ({ x, y, w, h }: Place): Place => ({ x: y, y: x, w: h, h: w });

/** With both directions exchanged. */
export const turned = ({ places, passages, width, height, isDown }: Layout): Layout => ({
  places: new Map([...places].map(([key, place]) => [key, turnedPlace(place)])),
  passages: new Map([...passages].map(([edge, way]) => [edge, way.map(turnedPlace)])),
  width: height,
  height: width,
  isDown,
});

type Spots = {
  w: number;
  h: number;
  at: { box: Box; x: number; y: number }[];
  /** By `from to` of an edge. */
  ways: Map<string, Place[]>;
};
const inOrder = (a: Box, b: Box) => a.order - b.order || (a.item?.key ?? -1) - (b.item?.key ?? -1);

/** Items that do not depend on each other, such as those of a fan: rows and columns, about as wide as high. */
function grid(boxes: Box[]): Spots {
  const sorted = [...boxes].sort(inOrder);
  const w = Math.max(...sorted.map((box) => box.w));
  const h = Math.max(...sorted.map((box) => box.h));
  const across = Math.ceil(Math.sqrt((sorted.length * (h + GAP.y)) / (w + GAP.y)));
  const at = sorted.map((box, index) => ({
    box,
    x: (index % across) * (w + GAP.y),
    y: Math.floor(index / across) * (h + GAP.y),
  }));
  const down = Math.ceil(sorted.length / across);
  return { w: across * (w + GAP.y) - GAP.y, h: down * (h + GAP.y) - GAP.y, at, ways: new Map() };
}

function columns(boxes: Box[], edges: [number, number][]): Spots {
  if (boxes.length === 0) return { w: NODE.w, h: NODE.h, at: [], ways: new Map() };
  const levels = [...new Set(boxes.map((box) => box.item!.level))].sort((a, b) => a - b);
  const columnOfLevel = new Map(levels.map((level, index) => [level, index]));
  const columnOf = (box: Box) => columnOfLevel.get(box.item!.level)!;
  const table: Box[][] = levels.map(() => []);
  for (const box of boxes) table[columnOf(box)]!.push(box);

  const byKey = new Map(boxes.map((box) => [box.item!.key, box]));
  const pairs = edges.map(([from, to]): [Box, Box] => [byKey.get(from)!, byKey.get(to)!]);
  const chains = passagesOf(pairs, columnOf, Math.max(PASSAGES_AT_LEAST, PASSAGES * boxes.length));
  // Items are drawn to items, whatever is between them, and passages to what is next to them on their way.
  const before = new Map<Box, Set<Box>>(boxes.map((box) => [box, new Set()]));
  const after = new Map<Box, Set<Box>>(boxes.map((box) => [box, new Set()]));
  pairs.forEach((pair, index) => {
    const chain = chains.get(index) ?? [];
    chain.forEach((passage, at) => {
      if (before.has(passage)) return;
      before.set(passage, new Set());
      after.set(passage, new Set());
      table[columnOf(pair[0]) + 1 + at]!.push(passage);
    });
    const [from, to] = pair;
    before.get(to)!.add(from);
    after.get(from)!.add(to);
    chain.forEach((passage, at) => {
      before.get(passage)!.add(chain[at - 1] ?? from);
      after.get(passage)!.add(chain[at + 1] ?? to);
    });
  });
  for (const column of table) column.sort(inOrder);
  // Few crossings: each item near the middle of those it depends on, and then of those that depend on it.
  const rank = new Map<Box, number>();
  const ranked = (column: Box[]) => column.forEach((box, index) => void rank.set(box, index / column.length));
  for (const column of table) ranked(column);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const column of down ? table : [...table].reverse()) {
      const near = down ? before : after;
      const wish = new Map(
        column.map((box) => [
          box,
          mean([...near.get(box)!].map((each) => rank.get(each)!)) ?? rank.get(box)!,
        ]),
      );
      column.sort((a, b) => wish.get(a)! - wish.get(b)! || inOrder(a, b));
      ranked(column);
    }
  }
  for (const column of table) stack(column, () => null);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const column of down ? table : [...table].reverse()) {
      const near = down ? before : after;
      stack(column, (box) => mean([...near.get(box)!].map((each) => each.y + each.h / 2)));
    }
  }
  const all = table.flat();
  const top = Math.min(...all.map((box) => box.y));
  const at: Spots["at"] = [];
  const through = new Map<Box, Place>();
  let x = 0;
  for (const column of table) {
    const widest = Math.max(...column.map((box) => box.w));
    for (const box of column) {
      if (box.item) at.push({ box, x: x + (widest - box.w) / 2, y: box.y - top });
      else through.set(box, { x, y: box.y - top + box.h / 2, w: widest, h: 0 });
    }
    x += widest + GAP.x;
  }
  const ways = new Map<string, Place[]>();
  for (const [index, chain] of chains)
    ways.set(
      edges[index]!.join(" "),
      chain.map((box) => through.get(box)!),
    );
  return { w: x - GAP.x, h: Math.max(...all.map((box) => box.y + box.h)) - top, at, ways };
}

/**
 * By the place of an edge: a passage in each column between its two items. Edges from one item share their passages, or those to one
 * item, whichever are more. None at all if there would be more than `most`.
 */
function passagesOf(
  pairs: readonly [Box, Box][],
  columnOf: (box: Box) => number,
  most: number,
): Map<number, Box[]> {
  const isLong = ([from, to]: readonly [Box, Box]) => columnOf(to) - columnOf(from) > 1;
  const arriving = new Map<Box, number>();
  const leaving = new Map<Box, number>();
  for (const pair of pairs) {
    if (!isLong(pair)) continue;
    leaving.set(pair[0], (leaving.get(pair[0]) ?? 0) + 1);
    arriving.set(pair[1], (arriving.get(pair[1]) ?? 0) + 1);
  }
  const shared = new Map<Box, Map<string, Box>>();
  const chains = new Map<number, Box[]>();
  let count = 0;
  for (const [index, pair] of pairs.entries()) {
    if (!isLong(pair)) continue;
    const [from, to] = pair;
    const isOfSource = leaving.get(from)! >= arriving.get(to)!;
    const owner = isOfSource ? from : to;
    const known = shared.get(owner) ?? new Map<string, Box>();
    shared.set(owner, known);
    const chain: Box[] = [];
    for (let column = columnOf(from) + 1; column < columnOf(to); column++) {
      const name = `${isOfSource ? "from" : "to"} ${column}`;
      let passage = known.get(name);
      if (!passage) {
        if (++count > most) return new Map();
        passage = { item: null, order: from.order, w: 0, h: PASSAGE.h, y: 0 };
        known.set(name, passage);
      }
      chain.push(passage);
    }
    chains.set(index, chain);
  }
  return chains;
}

const gapOf = (above: Box, below: Box) =>
  above.item && below.item ? GAP.y : above.item || below.item ? PASSAGE.gapToItem : PASSAGE.gap;

/**
 * Places a column in its order, without overlaps, as near as possible to where each item wants its middle (least squares: blocks
 * that would overlap are merged and share the mean of what they want). Passages make way for items.
 */
function stack(column: Box[], wish: (box: Box) => number | null) {
  const blocks: { boxes: Box[]; top: number; height: number; sum: number; weight: number }[] = [];
  let bottom = 0;
  for (const box of column) {
    const middle = wish(box);
    const top = middle === null ? (blocks.length === 0 ? box.y : bottom + GAP.y) : middle - box.h / 2;
    const own = box.item ? 1 : PASSAGE.weight;
    let block = { boxes: [box], top, height: box.h, sum: top * own, weight: own };
    let last = blocks.at(-1);
    while (last) {
      const shift: number = last.height + gapOf(last.boxes.at(-1)!, block.boxes[0]!);
      if (last.top + shift <= block.top) break;
      blocks.pop();
      const sum: number = last.sum + block.sum - block.weight * shift;
      const weight: number = last.weight + block.weight;
      block = {
        boxes: [...last.boxes, ...block.boxes],
        top: sum / weight,
        height: shift + block.height,
        sum,
        weight,
      };
      last = blocks.at(-1);
    }
    blocks.push(block);
    bottom = block.top + block.height;
  }
  for (const block of blocks) {
    let y = block.top;
    block.boxes.forEach((box, index) => {
      if (index > 0) y += gapOf(block.boxes[index - 1]!, box);
      box.y = y;
      y += box.h;
    });
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
  const liftedOf = new Map<string, string>();
  const seen = new Set<string>();
  for (const [from, to] of edges) {
    const [a, b] = [pathOf(from), pathOf(to)];
    let depth = 0;
    while (a[depth] === b[depth] && depth < a.length) depth++;
    const edge: [number, number] = [a[depth]!, b[depth]!];
    const name = `${edge[0]} ${edge[1]}`;
    if (edge[0] === undefined || edge[1] === undefined) continue;
    liftedOf.set(`${from} ${to}`, name);
    if (seen.has(name)) continue;
    seen.add(name);
    const container = depth === 0 ? null : a[depth - 1]!;
    const own = between.get(container);
    if (own) own.push(edge);
    else between.set(container, [edge]);
  }
  return { between, liftedOf };
}
