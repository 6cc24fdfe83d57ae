import { expect, test } from "vitest";
import { diffLines, stretches } from "./diff";

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

test("what is far from every change is folded, and no line is lost", () => {
  const before = Array.from({ length: 20 }, (_, index) => `line ${index}`);
  const lines = diffLines(before, before.with(10, "other"));
  const parts = stretches(lines, 2);
  expect(parts.map((part) => [part.kind, part.lines.length])).toEqual([
    ["folded", 8],
    ["lines", 6],
    ["folded", 7],
  ]);
  expect(parts.flatMap((part) => part.lines)).toEqual(lines);
});
