/** The tables of statuses and verbs, written by the server's own code: scripts/describe_api.py. */

import type { Schemas } from "./client";
import tables from "./tables.json";

export type RunStatus = Schemas["RunRecord"]["status"];
export type NodeStatus = Schemas["NodeRecord"]["status"];
export type AttemptStatus = Schemas["AttemptRecord"]["status"];
export type AnyStatus = RunStatus | NodeStatus | AttemptStatus;
export type Verb = keyof typeof tables.verbs;
export type Scope = "read" | "run" | "author" | "admin";

export const RUN_STATUSES = Object.keys(tables.run_statuses) as RunStatus[];
export const NODE_STATUSES = Object.keys(tables.node_statuses) as NodeStatus[];

const looks: Record<string, { symbol: string }> = tables.looks;
const attempts: Record<string, string> = {
  TIMED_OUT: "⧖",
  LOST: "!",
  RELEASED: "↺",
  SUPERSEDED: "–",
};

export const symbolOf = (status: string) => looks[status]?.symbol ?? attempts[status] ?? "?";
export const hasEnded = (status: RunStatus) => tables.run_statuses[status].terminal;
export const isResting = (status: RunStatus) => tables.run_statuses[status].resting;
export const nodeHasEnded = (status: NodeStatus) => tables.node_statuses[status].terminal;
export const isBroken = (status: NodeStatus) => tables.node_statuses[status].broken;
export const isActive = (status: NodeStatus) => tables.node_statuses[status].active;

export const VERBS = tables.verbs;
export const allows = (verb: Verb, status: RunStatus) => (VERBS[verb].allowed as string[]).includes(status);

/** How the reasons begin of runs that are paused until somebody decides. */
export const PAUSES = tables.pauses;

export const SCOPES = tables.scopes as Scope[];
export const includes = (scopes: readonly string[], needed: Scope) =>
  scopes.some((scope) => SCOPES.indexOf(scope as Scope) >= SCOPES.indexOf(needed));

/** `UPSTREAM_FAILED` as people read it. */
export const words = (status: string) => status.toLowerCase().replaceAll("_", " ");
