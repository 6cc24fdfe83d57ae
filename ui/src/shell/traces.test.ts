import { expect, test } from "vitest";
import { traceAddress } from "./traces";

const TEMPLATE = "https://traces.test/{run}?node={node}";

test("ids are put into their places and cannot be anything else of the address", () => {
  expect(traceAddress(TEMPLATE, "order-7", "n_1")).toBe("https://traces.test/order-7?node=n_1");
  expect(traceAddress(TEMPLATE, "order-7")).toBe("https://traces.test/order-7?node=");
  expect(traceAddress(TEMPLATE, "../{node}", "a&b=c#d")).toBe(
    "https://traces.test/..%2F%7Bnode%7D?node=a%26b%3Dc%23d",
  );
});

test("only http leads anywhere", () => {
  expect(traceAddress("javascript:alert('{run}')", "x")).toBeUndefined();
  expect(traceAddress("/{run}", "x")).toBeUndefined();
});
