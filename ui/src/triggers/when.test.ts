import { expect, test } from "vitest";
import { type Trigger, whenOf, workflowOf } from "./when";

test.each([
  ["report", "report"],
  ["report@3", "report"],
  ["shop.flows:Order", "Order"],
])("%s is the workflow %s", (workflow, name) => {
  expect(workflowOf({ workflow })).toBe(name);
});

test("what makes it fire", () => {
  const trigger = (more: object) => whenOf({ name: "t", ...more } as Trigger);
  expect(trigger({ kind: "cron", cron: "30 2 * * *", timezone: "Europe/Berlin" })).toBe(
    "30 2 * * * (Europe/Berlin)",
  );
  expect(trigger({ kind: "every", every: 900 })).toBe("every 15 min");
  expect(trigger({ kind: "every", every: 172_800 })).toBe("every 2 d");
  expect(trigger({ kind: "every", every: 90 })).toBe("every 90 s");
  expect(trigger({ kind: "webhook" })).toBe("POST /hooks/t");
});
