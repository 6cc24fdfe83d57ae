/** What is asked, under which key it is kept, and for how long. */

import { notifyManager, QueryClient, queryOptions } from "@tanstack/react-query";
import { ApiError, api, ask, askAll } from "./client";
import { pace } from "./pace";

notifyManager.setScheduler(pace);

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchOnWindowFocus: true,
      // What was refused is refused again; what did not arrive may arrive.
      retry: (count, error) => !(error instanceof ApiError && error.status < 500) && count < 2,
      retryDelay: (count) => 800 * 2 ** count,
    },
  },
});

const AWAY_INTERVAL = 3_000;

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: () => ask(api.GET("/api/v1/session")),
  staleTime: 60_000,
  retry: false,
  // A server that is away is asked until it is back.
  refetchInterval: (query) =>
    query.state.error && !(query.state.error instanceof ApiError) ? AWAY_INTERVAL : false,
});

export const serverQuery = queryOptions({
  queryKey: ["server"],
  queryFn: () => ask(api.GET("/api/v1/server")),
  staleTime: 300_000,
});

export const workflowsQuery = queryOptions({
  queryKey: ["workflows"],
  queryFn: () =>
    askAll((cursor) => api.GET("/api/v1/workflows", { params: { query: { limit: 1_000, cursor } } })),
});

export const workersQuery = queryOptions({
  queryKey: ["workers"],
  queryFn: () =>
    askAll((cursor) => api.GET("/api/v1/workers", { params: { query: { limit: 1_000, cursor } } })),
  refetchInterval: 10_000,
});

export const triggersQuery = queryOptions({
  queryKey: ["triggers"],
  queryFn: () =>
    askAll((cursor) => api.GET("/api/v1/triggers", { params: { query: { limit: 1_000, cursor } } })),
  refetchInterval: 5_000,
});

/** What waits for a worker that is not there. */
export const unservedQuery = queryOptions({
  queryKey: ["unserved"],
  queryFn: () => ask(api.GET("/api/v1/workers/unserved")),
  refetchInterval: 10_000,
});

export const runQuery = (run_id: string) =>
  queryOptions({
    queryKey: ["run", run_id],
    queryFn: () => ask(api.GET("/api/v1/runs/{run_id}", { params: { path: { run_id } } })),
  });
