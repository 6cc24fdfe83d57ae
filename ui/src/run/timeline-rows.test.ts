import { expect, test } from "vitest";
import type { Attempt } from "./attempts";
import { rowsOf, stretchesOf, withSkips } from "./timeline-rows";

const attempt = (
  node: string,
  started: number,
  group: string | null = null,
  ended = started + 10,
): Attempt => ({
  node,
  name: node,
  group,
  level: group ? 1 : 0,
  number: 1,
  status: "COMPLETED",
  worker: "w",
  waiting: started,
  started,
  ended,
  error: null,
});
const closed = { nameOf: (id: string) => `group ${id}`, isOpen: () => false };
const attempts = [
  attempt("first", 0),
  attempt("part_10", 20, "g"),
  attempt("part_9", 20, "g"),
  attempt("alone", 5, "h"),
  attempt("last", 90),
];

test("a closed group has one row, and a group of one node is that node", () => {
  const rows = rowsOf(attempts, "start", closed);
  expect(rows.map((row) => [row.name, row.attempts.length])).toEqual([
    ["first", 1],
    ["alone", 1],
    ["group g", 2],
    ["last", 1],
  ]);
});

test("the nodes of an open group are below it, by their numbers", () => {
  const rows = rowsOf(attempts, "graph", { ...closed, isOpen: () => true });
  expect(rows.map((row) => row.name)).toEqual(["first", "last", "alone", "group g", "part_9", "part_10"]);
});

test("what overlaps or is near is one stretch", () => {
  const some = [attempt("a", 0), attempt("b", 5), attempt("c", 17), attempt("d", 100)];
  expect(stretchesOf(some, 200, 3)).toEqual([
    { from: 0, to: 27 },
    { from: 100, to: 110 },
  ]);
});

test("the attempt with which a node was skipped is not one that was given back", () => {
  const given = attempts.slice(0, 2).map((each) => ({ ...each, status: "RELEASED" as const }));
  expect(withSkips(given, (node) => node === "first").map((each) => each.status)).toEqual([
    "SKIPPED",
    "RELEASED",
  ]);
});
