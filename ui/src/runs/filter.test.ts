import { expect, test } from "vitest";
import {
  asked,
  fromLocal,
  inOrder,
  inWords,
  quoted,
  readFilter,
  streamOf,
  toLocal,
  whichRuns,
} from "./filter";

test("an address that somebody has mistyped gives the filter that is left of it", () => {
  expect(
    asked(readFilter({ status: ["FAILED", "NONSENSE"], tag: "novalue", order: "7", q: " ", workflow: 3 })),
  ).toEqual({
    status: ["FAILED"],
  });
});

test("one value in an address is a list of one", () => {
  expect(readFilter({ status: "PAUSED", tag: "a=b" })).toMatchObject({ status: ["PAUSED"], tag: ["a=b"] });
});

test("the stream of a list has its filter, but for the statuses", () => {
  expect(streamOf({ workflow: "a&b", status: ["FAILED"], tag: ["a=b c", "d=e"], order: "duration" })).toBe(
    "/events?workflow=a%26b&tag=a%3Db+c&tag=d%3De",
  );
  expect(streamOf({})).toBe("/events");
});

test("a moment is chosen in local time and kept as a moment", () => {
  expect(fromLocal(toLocal("2026-03-01T12:34:56Z"))).toBe("2026-03-01T12:34:00.000Z");
  expect(toLocal("nonsense")).toBe("");
  expect(fromLocal("")).toBeUndefined();
});

test("a word for a shell, whatever is in it", () => {
  expect(quoted("it's")).toBe("'it'\\''s'");
  expect(quoted("a=b")).toBe("a=b");
});

test("an order of ended runs and a status that has not ended exclude each other", () => {
  expect(asked(inOrder({ status: ["RUNNING", "FAILED"] }, "ended"))).toEqual({
    status: ["FAILED"],
    order: "ended",
  });
  expect(asked(inOrder({ status: ["RUNNING"], q: "x" }, "duration"))).toEqual({ q: "x", order: "duration" });
  expect(asked(inOrder({ order: "ended", q: "x" }, undefined))).toEqual({ q: "x" });
});

test("a request in bulk is about the runs that are listed, so not about those that the order leaves out", () => {
  expect(whichRuns({ q: "x" })).toEqual({ q: "x" });
  expect(whichRuns({ order: "ended", status: ["FAILED"] })).toEqual({ status: ["FAILED"] });
  expect(whichRuns({ order: "duration" }).status?.sort()).toEqual(["CANCELLED", "COMPLETED", "FAILED"]);
});

test("a filter is said in words", () => {
  expect(inWords({})).toBe("All runs");
  expect(inWords({ workflow: "Order", status: ["FAILED", "PAUSED"], tag: ["shop=oslo"] })).toBe(
    "All runs of Order, that are failed or paused, with the tag shop=oslo",
  );
});
