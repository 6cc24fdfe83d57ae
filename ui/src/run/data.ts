/** A run as its page sees it: read once, and from then on kept up to date by its journal. */

import { keepPreviousData, queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import { ApiError, api, ask, type Schemas } from "@/api/client";
import { useStream } from "@/api/live";
import { runQuery } from "@/api/queries";
import type { NodeStatus } from "@/api/tables";
import { type GraphRecord, readGraph } from "@/graph/model";
import { changesGraph, changesRun, type Entry, extended, NOTHING, newerThan } from "./journal";

export type RunDetail = Schemas["RunDetail"];
export type NodeDetail = Schemas["NodeDetail"];

/** Whether its graph was built by a program: then there is no workflow that could be looked at, or started again, from here. */
export const isBuilt = (run: RunDetail) => run.target === null && !run.document?.version;

const REFRESH = 1_000;
/** What may change with every entry of the journal. */
const MOVING = ["run", "graph", "why", "attempts", "nodes", "failures"];

/** What is looked at: the groups that are open, a node that is shown with the groups it is in, and the moment. */
export type Sight = { open?: readonly string[]; show?: string; at?: number };

export const graphQuery = (run_id: string, { open = [], show, at }: Sight) =>
  queryOptions({
    queryKey: ["graph", run_id, { open, show, at }],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/runs/{run_id}/graph", {
          params: { path: { run_id }, query: { open: [...open], show, at } },
          signal,
        }),
      ),
    staleTime: at === undefined ? 0 : Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
  });

export const nodeQuery = (run_id: string, node: string) =>
  queryOptions({
    queryKey: ["node", run_id, node],
    queryFn: () => ask(api.GET("/api/v1/runs/{run_id}/nodes/{node}", { params: { path: { run_id, node } } })),
  });

export const whyQuery = (run_id: string, node: string | null) =>
  queryOptions({
    queryKey: ["why", run_id, node],
    queryFn: () =>
      ask(
        api.GET("/api/v1/runs/{run_id}/why", {
          params: { path: { run_id }, query: { node: node ?? undefined } },
        }),
      ),
  });

/**
 * The run, its graph, and the statuses of its nodes: those of the snapshot, and over them what the stream has told since. With
 * `at` it is the run as it was then, and nothing moves.
 */
export function useRun(run_id: string, sight: Sight) {
  const queries = useQueryClient();
  const run = useQuery(runQuery(run_id));
  const snapshot = useQuery(graphQuery(run_id, sight));
  const graph = useMemo(
    () => (snapshot.data ? readGraph(snapshot.data as GraphRecord) : null),
    [snapshot.data],
  );
  const [overlay, setOverlay] = useState(NOTHING);
  const refresh = useRefresh(run_id);
  const isPast = sight.at !== undefined;
  const isGone = run.error instanceof ApiError && run.error.status === 404;
  const follows = !isPast && !isGone && graph !== null && run.data !== undefined;
  const seq = graph?.record.seq ?? 0;

  useStream(
    follows ? `/runs/${encodeURIComponent(run_id)}/events` : null,
    ["journal", "reset"],
    seq,
    (events) => {
      const entries = events.filter((event) => event.kind === "journal").map((event) => event.data as Entry);
      const isReset = entries.length < events.length;
      const isOther = isReset || entries.some(changesGraph);
      const now = isOther || entries.some(changesRun);
      setOverlay((known) => extended(isReset ? NOTHING : known, entries, isReset ? 0 : seq));
      // What has no entries of its own is in the next snapshot: nodes that become READY, and what is in closed groups.
      for (const key of MOVING) refresh(key, now);
      if (now) refresh("checkpoints", now);
      for (const node of new Set(entries.map((entry) => entry.node))) {
        if (node !== null) void queries.invalidateQueries({ queryKey: ["node", run_id, node] });
      }
    },
  );

  const statuses = useMemo(() => (isPast ? NO_STATUSES : newerThan(overlay, seq)), [isPast, overlay, seq]);
  return {
    run: run.data,
    graph,
    statuses,
    error: run.error ?? snapshot.error,
    /** It is not there, or no longer. */
    isGone,
    retry: () => {
      void run.refetch();
      void snapshot.refetch();
    },
  };
}

const NO_STATUSES: ReadonlyMap<string, NodeStatus> = new Map();

/**
 * Asks anew for what is shown of a run: at most once a second, and not while the answer before is on its way, which would never
 * arrive if it took longer. After the last wish it is asked for once more; `now`: at once.
 */
function useRefresh(run_id: string) {
  const queries = useQueryClient();
  const timers = useRef(new Map<string, number>());
  return (key: string, now: boolean) => {
    const queryKey = [key, run_id];
    const wait = () =>
      timers.current.set(
        key,
        window.setTimeout(() => look(false), REFRESH),
      );
    const look = (cancels: boolean) => {
      timers.current.delete(key);
      if (!cancels && queries.isFetching({ queryKey }) > 0) wait();
      else void queries.invalidateQueries({ queryKey });
    };
    if (now) {
      clearTimeout(timers.current.get(key));
      look(true);
    } else if (!timers.current.has(key)) wait();
  };
}
