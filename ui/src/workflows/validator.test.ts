import { expect, test } from "vitest";
import { validator } from "./validator";

const schema = {
  type: "object",
  required: ["order_id"],
  additionalProperties: false,
  properties: {
    order_id: { type: "integer" },
    lines: { type: "array", items: { type: "object", properties: { sku: { type: "string" } } } },
    note: { anyOf: [{ type: "string" }, { type: "null" }] },
  },
} as const;

const stacks = (data: unknown) =>
  validator.validateFormData(data, schema as never).errors.map((error) => error.stack);

test("what is missing is named", () => {
  expect(stacks({})).toEqual(["order_id: is required"]);
});

test("what is wrong deep inside is said where it is, and not of all that is around it", () => {
  const said = stacks({ order_id: 1, lines: [{ sku: 7 }] });
  expect(said.length).toBe(1);
  expect(said[0]).toContain("lines.0.sku");
});

test("a field that may be null takes null and text", () => {
  expect(stacks({ order_id: 1, note: null })).toEqual([]);
  expect(stacks({ order_id: 1, note: "x" })).toEqual([]);
});
