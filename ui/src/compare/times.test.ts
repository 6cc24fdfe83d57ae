import { expect, test } from "vitest";
import type { Pair } from "./data";
import { byTime, secondsMore } from "./times";

const pair = (id: string, first: number | null, second: number | null) =>
  ({ id, first: { seconds: first }, second: second === null ? null : { seconds: second } }) as Pair;

test("what changed most in time comes first, slower or faster; what has no two times last", () => {
  const pairs = [pair("same", 1, 1), pair("only", 9, null), pair("slower", 1, 3), pair("faster", 5, 1)];
  expect(byTime(pairs).map((each) => each.id)).toEqual(["faster", "slower", "same", "only"]);
  expect(secondsMore(pairs[3]!)).toBe(-4);
  expect(secondsMore(pairs[1]!)).toBeNull();
});
