/** What the journal of a run has said about its nodes since its graph was read. */

import type { Schemas } from "@/api/client";
import type { NodeStatus } from "@/api/tables";

export type Entry = Pick<Schemas["JournalRecord"], "seq" | "kind" | "node" | "status">;
type Kind = Entry["kind"];

/** By node: its status, and the entry that said so. */
export type Overlay = ReadonlyMap<string, { status: NodeStatus; seq: number }>;

export const NOTHING: Overlay = new Map();

/** Kinds of entries after which the run has another graph. */
const NEW_GRAPH: ReadonlySet<Kind> = new Set<Kind>(["healed"]);

export const changesGraph = (entry: Entry) => NEW_GRAPH.has(entry.kind);
export const changesRun = (entry: Entry) => entry.kind === "run";

/** An entry of a claim has no status, since there is only one it can lead to. */
const statusAfter = (entry: Entry) =>
  entry.kind === "claimed" ? "RUNNING" : (entry.status as NodeStatus | null);

/** With these entries, and without what the graph says since it was read at the entry `seq`. */
export function extended(overlay: Overlay, entries: readonly Entry[], seq: number): Overlay {
  const next = new Map([...overlay].filter(([, known]) => known.seq > seq));
  for (const entry of entries) {
    const status = statusAfter(entry);
    if (entry.node === null || status === null || entry.seq <= seq) continue;
    if (entry.seq > (next.get(entry.node)?.seq ?? 0)) next.set(entry.node, { status, seq: entry.seq });
  }
  return next;
}

/** The statuses that are newer than a graph that was read at the entry `seq`. */
export const newerThan = (overlay: Overlay, seq: number): ReadonlyMap<string, NodeStatus> =>
  new Map([...overlay].filter(([, known]) => known.seq > seq).map(([node, known]) => [node, known.status]));
