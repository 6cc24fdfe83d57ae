import { expect, test } from "vitest";
import { diffLines } from "./diff";

const apply = (lines: ReturnType<typeof diffLines>, dropped: "gone" | "come") =>
  lines.filter((line) => line.kind !== dropped).map((line) => line.text);

test.each([
  ["a b c d", "a x c d"],
  ["", "a b"],
  ["a b", ""],
  ["a a a", "a a"],
  ["x a y b z", "a q b q"],
  ["a b c", "a b c"],
])("from %j to %j: the lines are those of both", (before, after) => {
  const [one, other] = [before.split(" "), after.split(" ")];
  const lines = diffLines(one, other);
  expect(apply(lines, "come")).toEqual(one);
  expect(apply(lines, "gone")).toEqual(other);
});
