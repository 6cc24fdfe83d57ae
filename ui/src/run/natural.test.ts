import { expect, test } from "vitest";
import { byStem } from "./natural";

test("parts of a fan are in the order of their numbers, where the first of them is", () => {
  const rows = ["split", "part_10", "part_9", "check", "part_1", "join"].map((name) => ({ name }));
  expect(byStem(rows).map((row) => row.name)).toEqual([
    "split",
    "part_1",
    "part_9",
    "part_10",
    "check",
    "join",
  ]);
});
