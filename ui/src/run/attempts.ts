/** All attempts of a run: what the timeline and the critical path are made of. */

import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "@/api/client";
import type { AttemptStatus } from "@/api/tables";

export type Attempt = {
  node: string;
  name: string;
  group: string | null;
  level: number;
  number: number;
  /** Of the attempt with which its node was skipped: SKIPPED. */
  status: AttemptStatus | "SKIPPED";
  worker: string;
  /** Milliseconds since the run was created. */
  waiting: number;
  started: number;
  ended: number | null;
  error: string | null;
};

export type Attempts = { since: number; seq: number; all: Attempt[]; whole: boolean };

type Table = Schemas["AttemptTable"];
const PAGES = 12;

export function readAttempts(table: Table): Attempt[] {
  const { nodes } = table;
  return table.node.map((place, row) => ({
    node: nodes.ids[place]!,
    name: nodes.names[place]!,
    group: nodes.groups[place] ?? null,
    level: nodes.levels[place]!,
    number: table.number[row]!,
    status: table.status[row]!,
    worker: table.workers[table.worker[row]!]!,
    waiting: table.waiting_us[row]! / 1_000,
    started: table.started_us[row]! / 1_000,
    ended: table.ended_us[row] == null ? null : table.ended_us[row]! / 1_000,
    error: table.error[row] ?? null,
  }));
}

export const attemptsQuery = (run_id: string) =>
  queryOptions({
    queryKey: ["attempts", run_id],
    queryFn: async ({ signal }): Promise<Attempts> => {
      const all: Attempt[] = [];
      let cursor: string | undefined;
      let first: Table | null = null;
      for (let page = 0; page < PAGES; page++) {
        const table = await ask(
          api.GET("/api/v1/runs/{run_id}/attempts", {
            params: { path: { run_id }, query: { cursor, limit: 10_000 } },
            signal,
          }),
        );
        first ??= table;
        all.push(...readAttempts(table));
        cursor = table.next ?? undefined;
        if (!cursor) break;
      }
      return { since: Date.parse(first!.since), seq: first!.seq, all, whole: !cursor };
    },
  });

/** When the latest attempt of a node ran, and what it failed with. */
export type NodeTimes = { started: string; ended: string | null; error: string | null; tries: number };

export function timesByNode(attempts: Attempts | undefined): ReadonlyMap<string, NodeTimes> {
  const times = new Map<string, NodeTimes>();
  if (!attempts) return times;
  const at = (milliseconds: number) => new Date(attempts.since + milliseconds).toISOString();
  const latest = new Map<string, Attempt>();
  for (const attempt of attempts.all) {
    const known = latest.get(attempt.node);
    if (!known || known.number < attempt.number) latest.set(attempt.node, attempt);
  }
  for (const [node, { number, started, ended, error }] of latest) {
    times.set(node, { started: at(started), ended: ended === null ? null : at(ended), error, tries: number });
  }
  return times;
}
