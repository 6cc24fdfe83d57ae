import { expect, test } from "vitest";
import { activeIndex } from "./active";

const keyOf = (row: string) => row;

test("the row that was chosen stays chosen, wherever it is", () => {
  expect(activeIndex(["a", "b"], keyOf, { key: "b", index: 1 })).toBe(1);
  expect(activeIndex(["new", "a", "b"], keyOf, { key: "b", index: 1 })).toBe(2);
  expect(activeIndex(["b"], keyOf, { key: "b", index: 1 })).toBe(0);
});

test("if it is gone, the row in its place is", () => {
  expect(activeIndex(["a", "c"], keyOf, { key: "b", index: 1 })).toBe(1);
  expect(activeIndex(["a"], keyOf, { key: "b", index: 1 })).toBe(0);
  expect(activeIndex([], keyOf, { key: "", index: 0 })).toBe(0);
});
