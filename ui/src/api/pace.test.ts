import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { paceOf } from "./pace";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("what comes alone is called at once, and what comes soon after waits for the others", () => {
  const pace = paceOf(100);
  const calls: [string, number][] = [];
  const begin = performance.now();
  const note = (name: string) => () => calls.push([name, performance.now() - begin]);
  pace(note("first"));
  vi.advanceTimersByTime(10);
  pace(note("second"));
  vi.advanceTimersByTime(30);
  pace(note("third"));
  vi.advanceTimersByTime(500);
  pace(note("fourth"));
  vi.advanceTimersByTime(0);
  expect(calls).toEqual([
    ["first", 0],
    ["second", 100],
    ["third", 100],
    ["fourth", 540],
  ]);
});

test("there are never more than ten calls a second, whatever comes", () => {
  const pace = paceOf(120);
  const times = new Set<number>();
  for (let at = 0; at < 3_000; at += 7) {
    pace(() => times.add(performance.now()));
    vi.advanceTimersByTime(7);
  }
  const busiest = Math.max(
    ...[...times].map((from) => [...times].filter((at) => from <= at && at < from + 1_000).length),
  );
  expect(busiest).toBeLessThanOrEqual(9);
});
