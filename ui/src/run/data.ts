/** A run as its page sees it: read once, and from then on kept up to date by its journal. */

import { keepPreviousData, queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { useStream } from "@/api/live";
import { runQuery } from "@/api/queries";
import { hasEnded, type NodeStatus } from "@/api/tables";
import { type GraphRecord, readGraph } from "@/graph/model";

export type RunDetail = Schemas["RunDetail"];
export type NodeDetail = Schemas["NodeDetail"];
type Entry = Schemas["JournalRecord"];

/** Kinds of entries after which the run has another graph. */
const NEW_GRAPH = new Set(["healed", "imported", "frozen"]);
const REFRESH = 1_000;

export const graphQuery = (run_id: string, open: readonly string[], at: number | undefined) =>
  queryOptions({
    queryKey: ["graph", run_id, open.join(","), at ?? "now"],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/runs/{run_id}/graph", {
          params: { path: { run_id }, query: { open: [...open], at } },
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
export function useRun(run_id: string, open: readonly string[], at: number | undefined) {
  const queries = useQueryClient();
  const run = useQuery(runQuery(run_id));
  const asked = useQuery(graphQuery(run_id, open, at));
  // While the graph of another run is read, the one before is still there: neither its nodes nor its place in the journal count.
  const record = asked.data as GraphRecord | undefined;
  const graph = useMemo(() => (record?.run === run_id ? readGraph(record) : null), [record, run_id]);
  const [news, setNews] = useState<{ of: string; statuses: ReadonlyMap<string, NodeStatus> }>({
    of: "",
    statuses: new Map(),
  });
  const refresh = useThrottled(REFRESH);
  const follows = at === undefined && graph !== null && run.data !== undefined;

  useStream(
    follows ? `/runs/${encodeURIComponent(run_id)}/events` : null,
    ["journal", "reset"],
    graph?.record.seq ?? 0,
    (events) => {
      const statuses = new Map(news.of === run_id ? news.statuses : []);
      let hidden = false;
      let anew = false;
      let ended = false;
      const touched = new Set<string>();
      for (const { kind, data } of events) {
        const entry = data as Entry;
        anew ||= kind === "reset" || NEW_GRAPH.has(entry.kind);
        ended ||= kind === "journal" && entry.kind === "run";
        if (kind !== "journal" || !entry.node) continue;
        touched.add(entry.node);
        // What a claim makes of a node goes without saying, so that its entry has no status.
        const status = entry.kind === "claimed" ? "RUNNING" : entry.status;
        if (status) statuses.set(entry.node, status as NodeStatus);
        hidden ||= !graph?.byId.has(entry.node);
      }
      setNews({ of: run_id, statuses: anew ? new Map() : statuses });
      refresh("run", () => void queries.invalidateQueries({ queryKey: ["run", run_id] }), ended);
      // What is in closed groups is counted by the server.
      if (hidden || anew)
        refresh("graph", () => void queries.invalidateQueries({ queryKey: ["graph", run_id] }), anew);
      refresh(
        "rest",
        () => {
          for (const key of ["why", "attempts", "nodes", "failures"]) {
            void queries.invalidateQueries({ queryKey: [key, run_id] });
          }
        },
        ended,
      );
      for (const node of touched) void queries.invalidateQueries({ queryKey: ["node", run_id, node] });
    },
  );

  const statuses = at === undefined && news.of === run_id ? news.statuses : NO_STATUSES;
  return {
    run: run.data,
    graph,
    statuses,
    error: run.error ?? asked.error,
    isPast: at !== undefined,
    isActive: run.data !== undefined && !hasEnded(run.data.status),
    retry: () => {
      void run.refetch();
      void asked.refetch();
    },
  };
}

const NO_STATUSES: ReadonlyMap<string, NodeStatus> = new Map();

/** Do something at most once in so many milliseconds, and once more after the last time it was wanted. */
function useThrottled(milliseconds: number) {
  const timers = useRef(new Map<string, number>());
  return (name: string, action: () => void, now = false) => {
    if (now) {
      clearTimeout(timers.current.get(name));
      timers.current.delete(name);
      action();
    } else if (!timers.current.has(name)) {
      timers.current.set(
        name,
        window.setTimeout(() => {
          timers.current.delete(name);
          action();
        }, milliseconds),
      );
    }
  };
}
