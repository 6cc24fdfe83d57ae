/** Which runs are listed. The address has the filter, the list shows it, and what is done in bulk is done to exactly it. */

import { hasEnded, RUN_STATUSES, type RunStatus } from "@/api/tables";

/** What comes first, other than the newest. Only runs that have ended have a place in these orders. */
export const ORDERS = ["ended", "duration"] as const;
export type Order = (typeof ORDERS)[number];

export type Filter = {
  status?: RunStatus[];
  workflow?: string;
  tag?: string[];
  q?: string;
  error?: string;
  fork_of?: string;
  prefix?: string;
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
    prefix: text(search.prefix),
    since: text(search.since),
    until: text(search.until),
    order: ORDERS.find((each) => each === search.order),
  };
}

/** The filter without what says nothing, as the API takes it. */
export const asked = (filter: Filter): Filter =>
  Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));

/** The filter with another order, which leaves out statuses that are not in it. */
export function inOrder(filter: Filter, order: Order | undefined): Filter {
  const status = order ? filter.status?.filter(hasEnded) : filter.status;
  return { ...filter, order, status: status?.length ? status : undefined };
}

/** The runs that are listed, as counts and requests in bulk take them: they have no order, only what it leaves out. */
export function whichRuns({ order, ...filter }: Filter): Omit<Filter, "order"> {
  return asked(order && !filter.status ? { ...filter, status: RUN_STATUSES.filter(hasEnded) } : filter);
}

/** The stream of a list. It takes no status, so that it also sends the runs that no longer have it. */
export function streamOf(filter: Filter): string {
  const { status: _, order: __, ...parts } = asked(filter);
  const words = Object.entries(parts).flatMap(([name, value]) =>
    [value].flat().map((each) => [name, String(each)]),
  );
  return words.length ? `/events?${new URLSearchParams(words)}` : "/events";
}

/** A moment of an address as a field for local times has it, and back. */
export function toLocal(at: string | undefined): string {
  const time = at === undefined ? Number.NaN : Date.parse(at);
  if (Number.isNaN(time)) return "";
  const offset = new Date(time).getTimezoneOffset() * 60_000;
  return new Date(time - offset).toISOString().slice(0, 16);
}

export const fromLocal = (text: string) => (text ? new Date(text).toISOString() : undefined);

/** A word as a shell takes it. */
export const quoted = (word: string) =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

const or = (parts: readonly string[]) => parts.join(" or ");

/** Which runs these are, as a sentence begins. */
export function inWords({ status, workflow, tag, q, error, fork_of, prefix, since, until }: Filter): string {
  const at = (time: string) => new Date(time).toLocaleString();
  const parts = [
    workflow && `of ${workflow}`,
    status && `that are ${or(status.map((each) => each.toLowerCase()))}`,
    tag && `with the tag ${tag.join(" and ")}`,
    error && `that failed with ${error}`,
    q && `that match “${q}”`,
    fork_of && `forked from ${fork_of}`,
    prefix && `whose ids begin with ${prefix}`,
    since && `created since ${at(since)}`,
    until && `created before ${at(until)}`,
  ].filter(Boolean);
  return parts.length ? `All runs ${parts.join(", ")}` : "All runs";
}
