import { expect, test } from "vitest";
import { fieldOrder, plain } from "./plain";

test("a field that may be null is a field that may be empty", () => {
  const schema = {
    type: "object",
    properties: {
      note: { anyOf: [{ type: "string" }, { type: "null" }], default: null, description: "what" },
      size: { anyOf: [{ type: "integer" }, { type: "string" }, { type: "null" }] },
      anyOf: { type: "string" },
    },
  } as const;
  expect(plain(schema as never)).toEqual({
    type: "object",
    properties: {
      note: { type: "string", description: "what" },
      size: { anyOf: [{ type: "integer" }, { type: "string" }, { type: "null" }] },
      anyOf: { type: "string" },
    },
  });
});

test("what must be given is asked for first", () => {
  expect(fieldOrder({ required: ["day"], properties: { currency: {}, day: {} } })).toEqual(["day", "*"]);
  expect(fieldOrder({ properties: {} })).toEqual(["*"]);
});
