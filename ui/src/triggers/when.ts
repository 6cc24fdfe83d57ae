import type { Schemas } from "@/api/client";

export type Trigger = Schemas["TriggerRecord"];

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
] as const;

/** An interval in the largest unit that it is a whole number of. */
function interval(seconds: number): string {
  const [unit, size] = UNITS.find(([, each]) => seconds % each === 0) ?? ["s", 1];
  return `${(seconds / size).toLocaleString()} ${unit}`;
}

/** What makes a trigger fire, in a few words. */
export function whenOf(trigger: Trigger): string {
  switch (trigger.kind) {
    case "cron":
      return `${trigger.cron}${trigger.timezone ? ` (${trigger.timezone})` : ""}`;
    case "every":
      return `every ${interval(Number(trigger.every))}`;
    case "webhook":
      return `POST /hooks/${trigger.name}`;
    case "run_finished":
      return `a run of ${String(trigger.run_finished?.workflow ?? "a workflow")} ends`;
    case "state":
      return `a state of ${String(trigger.state?.pipeline ?? "a pipeline")}`;
  }
}

/** The name of the workflow that a trigger starts: it may name a version, as in `report@3`, or a class, as in `shop.flows:Order`. */
export const workflowOf = (trigger: Pick<Trigger, "workflow">): string =>
  trigger.workflow.slice(trigger.workflow.lastIndexOf(":") + 1).replace(/@\d+$/, "");

/** Whether a trigger fires by the clock, so that times that have passed can be filled in. */
export const isScheduled = (trigger: Trigger) => trigger.kind === "cron" || trigger.kind === "every";
