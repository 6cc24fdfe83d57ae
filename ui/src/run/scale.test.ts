import { expect, test } from "vitest";
import { scaleOf, ticksOf, tickText } from "./scale";

test("without idle stretches the axis is even", () => {
  const scale = scaleOf([{ from: 100, to: 300 }], 400, true);
  expect([scale.x(100), scale.x(200), scale.x(300)]).toEqual([0, 200, 400]);
  expect(scale.idle).toEqual([]);
});

test("a day between two attempts does not squeeze them", () => {
  const day = 86_400_000;
  const spans = [
    { from: 0, to: 1_000 },
    { from: day, to: day + 1_000 },
  ];
  const scale = scaleOf(spans, 1_000, true);
  expect(scale.idle.length).toBe(1);
  expect(scale.x(1_000) - scale.x(0)).toBeGreaterThan(400);
  expect(scale.x(day + 1_000)).toBeCloseTo(1_000);
  const plain = scaleOf(spans, 1_000, false);
  expect(plain.x(1_000) - plain.x(0)).toBeLessThan(1);
});

test("later is never further left", () => {
  const spans = Array.from({ length: 40 }, (_, index) => ({
    from: index ** 3 * 10,
    to: index ** 3 * 10 + 50,
  }));
  const scale = scaleOf(spans, 800, true);
  let last = -1;
  for (let time = 0; time <= 39 ** 3 * 10 + 50; time += 997) {
    expect(scale.x(time)).toBeGreaterThanOrEqual(last);
    last = scale.x(time);
  }
  expect(last).toBeLessThanOrEqual(800.01);
});

test("the axis begins when the first attempt was waited for", () => {
  const scale = scaleOf([{ from: 100, to: 200 }], 400, false, 0);
  expect([scale.x(0), scale.x(100), scale.x(200)]).toEqual([0, 200, 400]);
  const compressed = scaleOf([{ from: 1_000_000, to: 1_000_100 }], 400, true, 0);
  expect(compressed.idle.map((gap) => [gap.from, gap.to])).toEqual([[0, 1_000_000]]);
  expect(compressed.x(1_000_000)).toBeLessThan(100);
});

test("marks of the axis are round, have room, and leave idle stretches out", () => {
  const even = ticksOf(scaleOf([{ from: 40, to: 1_040 }], 800, true));
  expect(even.map((tick) => tick.time)).toEqual([0, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
  const day = 86_400_000;
  const scale = scaleOf(
    [
      { from: 0, to: 1_000 },
      { from: day, to: day + 1_000 },
    ],
    600,
    true,
  );
  const gap = scale.idle[0]!;
  const ticks = ticksOf(scale);
  expect(ticks.every((tick) => tick.x <= gap.x || tick.x >= gap.x + gap.w)).toBe(true);
  expect(ticks.some((tick) => tick.time >= day)).toBe(true);
  for (const [index, tick] of ticks.entries()) {
    if (index > 0) expect(tick.x - ticks[index - 1]!.x).toBeGreaterThanOrEqual(74);
  }
});

test("an axis of nothing has a mark where it begins", () => {
  expect(ticksOf(scaleOf([], 400, true)).map((tick) => tick.time)).toEqual([0]);
});

test("marks have round words", () => {
  const times = [0, 50, 1_000, 1_500, 20_000, 60_000, 90_000, 120_000, 3_600_000, 5_400_000];
  expect(times.map(tickText)).toEqual([
    ...["0", "50 ms", "1 s", "1.5 s", "20 s", "1 min", "1 min 30 s", "2 min", "1 h", "1 h 30 min"],
  ]);
});
