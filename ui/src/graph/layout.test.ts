import { expect, test } from "vitest";
import { type Input, type Item, layout, type Place } from "./layout";

const node = (key: number, level: number, more: Partial<Item> = {}): Item => ({
  key,
  level,
  order: key,
  group: null,
  open: false,
  ...more,
});

const overlap = (a: Place, b: Place) =>
  a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

function random(seed: number) {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

function anyGraph(seed: number, size: number): Input {
  const next = random(seed);
  const items: Item[] = [];
  const edges: [number, number][] = [];
  for (let key = 0; key < size; key++) {
    const parents =
      key === 0 ? [] : Array.from({ length: Math.floor(next() * 3) }, () => Math.floor(next() * key));
    const level = Math.max(-1, ...parents.map((each) => items[each]!.level)) + 1;
    items.push(node(key, level));
    for (const parent of new Set(parents)) edges.push([parent, key]);
  }
  return { items, edges };
}

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  "graph %i: nothing overlaps, and every edge leads to the right",
  (seed) => {
    const input = anyGraph(seed, 60);
    const { places, width, height } = layout(input);
    const all = [...places.entries()];
    expect(all.length).toBe(60);
    for (const [a, one] of all) {
      expect(one.x).toBeGreaterThanOrEqual(0);
      expect(one.x + one.w).toBeLessThanOrEqual(width + 0.01);
      expect(one.y).toBeGreaterThanOrEqual(-0.01);
      expect(one.y + one.h).toBeLessThanOrEqual(height + 0.01);
      for (const [b, other] of all) if (a < b) expect(overlap(one, other)).toBe(false);
    }
    for (const [from, to] of input.edges) {
      expect(places.get(from)!.x + places.get(from)!.w).toBeLessThan(places.get(to)!.x);
    }
  },
);

test("a chain is a straight line", () => {
  const { places } = layout({
    items: [node(0, 0), node(1, 1), node(2, 2)],
    edges: [
      [0, 1],
      [1, 2],
    ],
  });
  expect(new Set([...places.values()].map((place) => place.y)).size).toBe(1);
});

test("a diamond stands in the middle of what it joins", () => {
  const { places } = layout({
    items: [node(0, 0), node(1, 1), node(2, 1), node(3, 2)],
    edges: [
      [0, 1],
      [0, 2],
      [1, 3],
      [2, 3],
    ],
  });
  const middle = (key: number) => places.get(key)!.y + places.get(key)!.h / 2;
  expect(middle(0)).toBeCloseTo((middle(1) + middle(2)) / 2);
  expect(middle(3)).toBeCloseTo(middle(0));
});

test("what is in an open group is drawn inside it, and nothing else is", () => {
  const items = [node(0, 0), node(1, 2), node(9, 1, { open: true })];
  for (let key = 10; key < 40; key++) items.push(node(key, 1, { group: 9 }));
  const edges: [number, number][] = [];
  for (let key = 10; key < 40; key++) edges.push([0, key], [key, 1]);
  const { places } = layout({ items, edges });
  const group = places.get(9)!;
  for (let key = 10; key < 40; key++) {
    const place = places.get(key)!;
    expect(place.x > group.x && place.x + place.w < group.x + group.w).toBe(true);
    expect(place.y > group.y && place.y + place.h < group.y + group.h).toBe(true);
  }
  expect(overlap(group, places.get(0)!) || overlap(group, places.get(1)!)).toBe(false);
});

test.each([1, 2, 3, 4])("graph %i from above: nothing overlaps, and every edge leads down", (seed) => {
  const input = { ...anyGraph(seed, 60), isDown: true };
  const { places, width, height } = layout(input);
  const all = [...places.entries()];
  for (const [a, one] of all) {
    expect([one.w, one.h]).toEqual([208, 48]);
    expect(one.x + one.w).toBeLessThanOrEqual(width + 0.01);
    expect(one.y + one.h).toBeLessThanOrEqual(height + 0.01);
    for (const [b, other] of all) if (a < b) expect(overlap(one, other)).toBe(false);
  }
  for (const [from, to] of input.edges) {
    expect(places.get(from)!.y + places.get(from)!.h).toBeLessThan(places.get(to)!.y);
  }
});

test("an open group from above has its head above what is in it", () => {
  const items = [node(0, 0), node(1, 1, { group: 2 }), node(2, 1, { open: true })];
  const { places } = layout({ items, edges: [[0, 1]], isDown: true });
  const [inner, group] = [places.get(1)!, places.get(2)!];
  expect(inner.y - group.y).toBe(30);
  expect(inner.x - group.x).toBe(14);
});

const crosses = (way: Place, place: Place) =>
  way.x < place.x + place.w &&
  place.x < way.x + way.w &&
  way.y <= place.y + place.h &&
  place.y <= way.y + way.h;

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  "graph %i: an edge over several levels leads past the items in between",
  (seed) => {
    const input = anyGraph(seed, 60);
    for (const isDown of [false, true]) {
      const { places, passages } = layout({ ...input, isDown });
      for (const [from, to] of input.edges) {
        const span = input.items[to]!.level - input.items[from]!.level;
        const way = passages.get(`${from} ${to}`) ?? [];
        expect(way.length).toBe(span - 1);
        for (const each of way) for (const place of places.values()) expect(crosses(each, place)).toBe(false);
      }
    }
  },
);

test("a chain beside which an edge leads stays straight", () => {
  const { places } = layout({
    items: [node(0, 0), node(1, 1), node(2, 2)],
    edges: [
      [0, 1],
      [1, 2],
      [0, 2],
    ],
  });
  const middles = [...places.values()].map((place) => place.y + place.h / 2);
  expect(Math.max(...middles) - Math.min(...middles)).toBeLessThan(2);
});

test("many long edges to one item share their way", () => {
  const items = [...Array.from({ length: 6 }, (_, key) => node(key, 0)), node(6, 1), node(7, 2)];
  const edges: [number, number][] = [
    ...Array.from({ length: 6 }, (_, key): [number, number] => [key, 7]),
    [0, 6],
    [6, 7],
  ];
  const { passages } = layout({ items, edges });
  expect(new Set([...passages.values()].map(([way]) => way!.y)).size).toBe(1);
});

test("an edge out of an open group leads past the items beside the group", () => {
  const items = [node(0, 0, { group: 9 }), node(9, 0, { open: true }), node(1, 1), node(2, 2)];
  const edges: [number, number][] = [
    [0, 1],
    [1, 2],
    [0, 2],
  ];
  const { passages, places } = layout({ items, edges });
  const way = passages.get("0 2")!;
  expect(way.length).toBe(1);
  expect(crosses(way[0]!, places.get(1)!)).toBe(false);
});
