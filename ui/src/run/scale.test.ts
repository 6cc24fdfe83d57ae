import { expect, test } from "vitest";
import { scaleOf } from "./scale";

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
