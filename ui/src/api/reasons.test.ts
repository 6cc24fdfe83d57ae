import { expect, test } from "vitest";
import { conditionWords, reasonWords } from "./reasons";

test("a condition is shown without where it is imported from, and without ids", () => {
  expect(conditionWords("shop.orders:is_risky(check=n_8f3a2b11, total=n_1)")).toBe("is_risky(check, total)");
  expect(conditionWords("{{ check.result }}")).toBe("check.result");
  expect(conditionWords("is_risky")).toBe("is_risky");
  expect(conditionWords("<lambda>")).toBe("its condition holds");
});

test("reasons of skips are sentences, all others their words", () => {
  expect(reasonWords("parents_skipped")).toBe("all parents were skipped");
  expect(reasonWords("worker_lost")).toBe("worker lost");
});
