/** Which runs are listed. The address has the filter, the list shows it, and what is done in bulk is done to exactly it. */

import { RUN_STATUSES, type RunStatus } from "@/api/tables";

export const ORDERS = ["created", "started", "ended", "duration"] as const;
export type Order = (typeof ORDERS)[number];

export type Filter = {
  status?: RunStatus[];
  workflow?: string;
  tag?: string[];
  q?: string;
  error?: string;
  fork_of?: string;
  since?: string;
  until?: string;
  order?: Order;
};

const text = (value: unknown) => (typeof value === "string" && value.trim() ? value : undefined);
const list = (value: unknown) =>
  (Array.isArray(value) ? value : value === undefined ? [] : [value]).map(String);

/** The filter of an address, whatever somebody wrote there. */
export function readFilter(search: Record<string, unknown>): Filter {
  const status = list(search.status).filter((each): each is RunStatus =>
    (RUN_STATUSES as string[]).includes(each),
  );
  const tag = list(search.tag).filter((each) => /^[^=]+=/.test(each));
  return {
    status: status.length ? status : undefined,
    workflow: text(search.workflow),
    tag: tag.length ? tag : undefined,
    q: text(search.q),
    error: text(search.error),
    fork_of: text(search.fork_of),
    since: text(search.since),
    until: text(search.until),
    order: ORDERS.find((each) => each === search.order),
  };
}

/** The filter without what says nothing, as the API takes it. */
export const asked = (filter: Filter): Filter =>
  Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));

/** The options of `stepwell ls` that list the same runs. */
export function commandOf(filter: Filter): string {
  const words = [
    ...(filter.status ?? []).map((each) => `--status ${each}`),
    ...(filter.workflow ? [`--workflow ${quoted(filter.workflow)}`] : []),
    ...(filter.tag ?? []).map((each) => `--tag ${quoted(each)}`),
    ...(filter.since ? [`--since ${filter.since}`] : []),
    ...(filter.until ? [`--until ${filter.until}`] : []),
  ];
  return ["stepwell ls", ...words].join(" ");
}

export const quoted = (word: string) =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
