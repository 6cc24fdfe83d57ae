import { expect, test } from "vitest";
import { type Line, merged } from "./merging";

const line = (time: string, index: number, node_id = "a"): Line =>
  ({ time, index, node_id, attempt: 1 }) as Line;

test("lines that come twice are there once, and all are by time", () => {
  const [a0, a1, a2] = [line("01", 0), line("03", 1), line("05", 2)];
  const [b0, b1] = [line("02", 0, "b"), line("05", 1, "b")];
  expect(merged([a0!, a1!], [a1!, a2!])).toEqual([a0, a1, a2]);
  expect(merged([a0!, a1!, a2!], [b0!, b1!])).toEqual([a0, b0, a1, a2, b1]);
  expect(merged([], [a0!])).toEqual([a0]);
});

test("what brings nothing new is the same list", () => {
  const known = [line("01", 0)];
  expect(merged(known, [line("01", 0)])).toBe(known);
});
