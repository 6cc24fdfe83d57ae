import { expect, test } from "vitest";
import { parseObject } from "./input";

test("an object is read; nothing is no object, and no error", () => {
  expect(parseObject('{"a": 1}')).toEqual({ value: { a: 1 }, error: null });
  expect(parseObject("  ")).toEqual({ error: null });
});

test("what is no object is refused", () => {
  for (const text of ["[1]", "7", "null", "{"]) {
    const { value, error } = parseObject(text);
    expect(value).toBeUndefined();
    expect(error).toBeTruthy();
  }
});
