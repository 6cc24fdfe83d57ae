/** The rows of the timeline: nodes, and groups of the graph that are closed, each with its attempts. */

import type { AttemptStatus } from "@/api/tables";
import type { ORDERS } from "@/router";
import type { Attempt } from "./attempts";
import { natural } from "./natural";

export type Order = (typeof ORDERS)[number];
export type Row = {
  id: string;
  name: string;
  level: number;
  attempts: Attempt[];
  /** Of a group: how many nodes it stands for here, and whether they are listed below it. */
  group: { size: number; open: boolean } | null;
  /** Whether it is of the group above it. */
  inside: boolean;
};

const NO_END = Number.MAX_SAFE_INTEGER;
const startOf = (row: Row) => row.attempts[0]!.started;
const lengthOf = (row: Row) =>
  row.attempts.reduce((sum, attempt) => sum + (attempt.ended ?? NO_END) - attempt.started, 0);

const ORDER: Record<Order, (a: Row, b: Row) => number> = {
  start: (a, b) => startOf(a) - startOf(b) || natural(a.name, b.name),
  graph: (a, b) => a.level - b.level || natural(a.name, b.name),
  longest: (a, b) => lengthOf(b) - lengthOf(a),
};

type Grouping = { nameOf: (group: string) => string; isOpen: (group: string) => boolean };

/** One group has one row, and its nodes have theirs while it is open. A group of a single node is that node. */
export function rowsOf(attempts: readonly Attempt[], order: Order, { nameOf, isOpen }: Grouping): Row[] {
  const nodes = new Map<string, Row>();
  const groups = new Map<string, Row[]>();
  for (const attempt of attempts) {
    const known = nodes.get(attempt.node);
    if (known) {
      known.attempts.push(attempt);
      continue;
    }
    const { node: id, name, level, group } = attempt;
    const row: Row = { id, name, level, attempts: [attempt], group: null, inside: false };
    nodes.set(id, row);
    if (group === null) continue;
    const members = groups.get(group);
    if (members) members.push(row);
    else groups.set(group, [row]);
  }
  const rows: Row[] = [];
  const grouped = new Set<Row>();
  const membersOf = new Map<Row, Row[]>();
  for (const [id, members] of groups) {
    if (members.length === 1) continue;
    for (const member of members) grouped.add(member);
    const all = members.flatMap((member) => member.attempts).sort((a, b) => a.started - b.started);
    const row: Row = {
      id,
      name: nameOf(id),
      level: Math.min(...members.map((member) => member.level)),
      attempts: all,
      group: { size: members.length, open: isOpen(id) },
      inside: false,
    };
    rows.push(row);
    membersOf.set(row, members);
  }
  for (const row of nodes.values()) if (!grouped.has(row)) rows.push(row);
  rows.sort(ORDER[order]);
  return rows.flatMap((row) =>
    row.group?.open
      ? [
          row,
          ...membersOf
            .get(row)!
            .sort(ORDER[order])
            .map((member) => ({ ...member, inside: true })),
        ]
      : [row],
  );
}

export type Stretch = { from: number; to: number };

/** When something of a group ran: attempts that touch or overlap are one stretch. `least`: what is nearer than this touches. */
export function stretchesOf(attempts: readonly Attempt[], until: number, least: number): Stretch[] {
  const stretches: Stretch[] = [];
  for (const attempt of attempts) {
    const to = attempt.ended ?? Math.max(attempt.started, until);
    const last = stretches.at(-1);
    if (last && attempt.started <= last.to + least) last.to = Math.max(last.to, to);
    else stretches.push({ from: attempt.started, to });
  }
  return stretches;
}

const BAD: ReadonlySet<Attempt["status"]> = new Set<AttemptStatus>(["FAILED", "TIMED_OUT", "LOST"]);

/** What evaluated a condition that did not hold gave its node back; what became of the node says more. */
export const withSkips = (attempts: readonly Attempt[], isSkipped: (node: string) => boolean): Attempt[] =>
  attempts.map((each) =>
    each.status === "RELEASED" && isSkipped(each.node) ? { ...each, status: "SKIPPED" } : each,
  );
export const isBad = (attempt: Attempt) => BAD.has(attempt.status);
