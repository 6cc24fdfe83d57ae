import { expect, test } from "vitest";
import { changesGraph, type Entry, extended, NOTHING, newerThan } from "./journal";

const entry = (
  seq: number,
  kind: Entry["kind"],
  status: string | null = null,
  node: string | null = "a",
) => ({
  seq,
  kind,
  status,
  node,
});

test("a node runs from the moment of its claim, whose entry has no status", () => {
  const claimed = extended(NOTHING, [entry(2, "claimed")], 1);
  expect([...newerThan(claimed, 1)]).toEqual([["a", "RUNNING"]]);
  const completed = extended(claimed, [entry(3, "completed", "COMPLETED")], 1);
  expect([...newerThan(completed, 1)]).toEqual([["a", "COMPLETED"]]);
});

test("a graph that was read later than an entry wins over it", () => {
  const retried = extended(NOTHING, [entry(7, "rewrote", "READY")], 5);
  expect([...newerThan(retried, 6)]).toEqual([["a", "READY"]]);
  expect([...newerThan(retried, 7)]).toEqual([]);
  expect([...extended(retried, [entry(8, "claimed", null, "b")], 7).keys()]).toEqual(["b"]);
});

test("an entry that comes again, or late, changes nothing", () => {
  const now = extended(NOTHING, [entry(4, "completed", "COMPLETED")], 1);
  expect([...newerThan(extended(now, [entry(3, "claimed")], 1), 1)]).toEqual([["a", "COMPLETED"]]);
  expect(extended(now, [entry(4, "completed", "COMPLETED")], 4).size).toBe(0);
});

test("entries about the run are none of a node, and only a heal gives another graph", () => {
  const others = [
    entry(2, "gate", "pause", null),
    entry(3, "run", "PAUSED", null),
    entry(4, "healed", "x y", null),
  ];
  expect(extended(NOTHING, others, 1).size).toBe(0);
  expect(others.map(changesGraph)).toEqual([false, false, true]);
});
