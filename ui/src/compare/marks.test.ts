import { expect, test } from "vitest";
import type { Pair } from "./data";
import { briefly, markOf } from "./marks";

const pair = (first: string | null, second: string | null, differs: Pair["differs"]) =>
  ({
    first: first && { status: first },
    second: second && { status: second },
    differs,
  }) as Pair;

test("what differs is said by what one wants to know first", () => {
  expect(briefly(pair("FAILED", "COMPLETED", ["output", "status", "attempts"]))).toBe("failed → completed");
  expect(briefly(pair("COMPLETED", "COMPLETED", ["output", "attempts"]))).toBe(
    "other output, number of attempts",
  );
  expect(briefly(pair(null, "COMPLETED", ["missing"]))).toBe("only in the second run");
  expect(briefly(pair("COMPLETED", "COMPLETED", []))).toBe("the same");
});

test("each kind of difference has a mark, and what is not listed is the same", () => {
  expect(markOf(pair("FAILED", "COMPLETED", ["status"])).symbol).toBe("≠");
  expect(markOf(pair(null, "COMPLETED", ["missing"])).symbol).toBe("+");
  expect(markOf(undefined).symbol).toBe("=");
});
