/** How a node differs, in words and marks. */

import { words } from "@/api/tables";
import type { Pair } from "./data";

/** In which respects a node may differ, as people say it. */
export const WORDS: Record<Pair["differs"][number], string> = {
  output: "other output",
  delta: "other change of state",
  missing: "only in one",
  status: "other status",
  attempts: "other number of attempts",
};

export const differsIn = (pair: Pair) => pair.differs.map((each) => WORDS[each]).join(", ") || "the same";

const SHORT: Record<Pair["differs"][number], string> = {
  output: "output",
  delta: "change of state",
  missing: "only in the second run",
  status: "status",
  attempts: "number of attempts",
};

/** What differs most, in few words: the statuses themselves, if they do. */
export function briefly(pair: Pair): string {
  const { first, second, differs } = pair;
  if (differs.includes("missing")) return first ? "only in the first run" : SHORT.missing;
  if (differs.includes("status") && first && second)
    return `${words(first.status)} → ${words(second.status)}`;
  return differs.length ? `other ${differs.map((each) => SHORT[each]).join(", ")}` : "the same";
}

/** How a node is drawn, by how it differs. */
export const MARKS = {
  differs: { look: "DIFFERS", symbol: "≠", words: "differs" },
  added: { look: "ADDED", symbol: "+", words: "only in the second run" },
  same: { look: "SAME", symbol: "=", words: "the same" },
} as const;

export const markOf = (pair: Pair | undefined) =>
  !pair || pair.differs.length === 0 ? MARKS.same : pair.first === null ? MARKS.added : MARKS.differs;
