/** What failed in a run, by error. */

import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "@/api/client";

export type Failures = Schemas["FailuresRecord"];

export const failuresQuery = (run_id: string) =>
  queryOptions({
    queryKey: ["failures", run_id],
    queryFn: () => ask(api.GET("/api/v1/runs/{run_id}/failures", { params: { path: { run_id } } })),
  });

/** The message of what each node failed with, as far as nodes are named. */
export function messagesByNode(failures: Failures | undefined): ReadonlyMap<string, string> {
  const messages = new Map<string, string>();
  for (const group of failures?.groups ?? []) {
    for (const node of group.nodes) messages.set(node, group.message);
  }
  return messages;
}

/** How often something is, as in `1 node` and `3 nodes`. */
export const count = (number: number, noun: string) =>
  `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;
