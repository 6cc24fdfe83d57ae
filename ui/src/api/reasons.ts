/** Why a node has its status, and what its condition is, in words for people. */

import { words } from "./tables";

const SKIPS: Record<string, string> = {
  condition: "condition did not hold",
  parents_skipped: "all parents were skipped",
  parent_skipped: "a parent was skipped",
  healed_late: "joined the run too late",
};

export const reasonWords = (reason: string) => SKIPS[reason] ?? words(reason);

/** `shop.orders:is_risky(check=n_8f3a2b11)` as `is_risky(check)`, `{{ check.result }}` as `check.result`. */
export function conditionWords(condition: string): string {
  if (condition === "<lambda>") return "its condition holds";
  const expression = /^\{\{([\s\S]*)\}\}$/.exec(condition);
  if (expression) return expression[1]!.trim();
  const stored = /^[^:()\s]+:([^()\s]+)\(([\s\S]*)\)$/.exec(condition);
  if (!stored) return condition;
  const takes = stored[2]!.split(", ").map((pair) => pair.split("=")[0]);
  return `${stored[1]}(${takes.join(", ")})`;
}
