import { expect, test } from "vitest";
import { type GraphRecord, isInside, openGroups, readGraph, without } from "./model";

/** `a` leads to a fan of two, which is open, and to a closed group. */
const record = {
  workflow: "w",
  run: "r",
  seq: 3,
  digest: "d",
  size: 9,
  nodes: {
    ids: ["a", "b1", "b2"],
    names: ["a", "b1", "b2"],
    jobs: [null, null, null],
    levels: [0, 1, 1],
    orders: [0, 1, 2],
    statuses: ["COMPLETED", "COMPLETED", "FAILED"],
    reasons: [null, null, null],
    conditions: [null, "is_risky", null],
    groups: [null, 1, 1],
  },
  groups: {
    ids: ["closed", "fan, of two"],
    kinds: ["fan", "fan"],
    names: ["closed", "b"],
    levels: [1, 1],
    sizes: [6, 2],
    counts: [{ COMPLETED: 6 }, { COMPLETED: 1, FAILED: 1 }],
    groups: [null, null],
    is_open: [false, true],
  },
  edges: { offsets: [0, 0, 1, 2, 3, 3], parents: [0, 0, 0] },
} as unknown as GraphRecord;

test("a graph is read with its groups, and knows what is in which", () => {
  const graph = readGraph(record);
  expect(graph.edges).toEqual([
    [0, 1],
    [0, 2],
    [0, 3],
  ]);
  expect(openGroups(graph)).toEqual(["fan, of two"]);
  expect(isInside(graph, graph.byId.get("b1")!, "fan, of two")).toBe(true);
  expect(isInside(graph, graph.byId.get("a")!, "fan, of two")).toBe(false);
});

test("an open group is left out with the last of its nodes, and another topology is laid out anew", () => {
  const graph = readGraph(record);
  const some = without(graph, (item) => item.id === "b1" || item.id === "closed");
  expect(some.items.map((item) => item.id)).toEqual(["a", "b2", "fan, of two"]);
  expect(some.edges).toEqual([[0, 2]]);
  const none = without(graph, (item) => item.id.startsWith("b"));
  expect(none.items.map((item) => item.id)).toEqual(["a", "closed"]);
  expect(new Set([graph.topology, some.topology, none.topology]).size).toBe(3);
});
