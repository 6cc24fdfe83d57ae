/** What needs the code of a run: a worker that has it does it, in a run of its own, which is followed here until it has ended. */

import { useMutation, useQuery } from "@tanstack/react-query";
import { ApiError, api, ask } from "@/api/client";
import { runQuery } from "@/api/queries";
import { hasEnded } from "@/api/tables";
import { Command } from "@/ui/copy";
import { Failure } from "@/ui/states";
import { nodeQuery, whyQuery } from "./data";

const LOOK_EVERY = 400;

/** `kind`: the name of the node that does it. */
export function useByWorker<T>(kind: "replay" | "state", request: () => Promise<{ id: string }>) {
  const starting = useMutation({ mutationFn: request });
  const id = starting.data?.id ?? "";
  const run = useQuery({
    ...runQuery(id),
    enabled: id !== "",
    refetchInterval: ({ state }) => (state.data && hasEnded(state.data.status) ? false : LOOK_EVERY),
  });
  const status = id === "" ? undefined : run.data?.status;
  const isOver = status !== undefined && hasEnded(status);
  const node = useQuery({
    ...nodeQuery(id, kind),
    enabled: id !== "" && !isOver,
    refetchInterval: LOOK_EVERY,
  });
  const result = useQuery({
    queryKey: ["results", id],
    queryFn: () => ask(api.GET("/api/v1/runs/{run_id}/results", { params: { path: { run_id: id } } })),
    enabled: status === "COMPLETED",
  });
  // Why it failed, or why nobody has begun.
  const isWaiting = status === "PENDING";
  const why = useQuery({
    ...whyQuery(id, null),
    enabled: isWaiting || (isOver && status !== "COMPLETED"),
    refetchInterval: isWaiting ? 5 * LOOK_EVERY : false,
  });
  const error = starting.error ?? run.error ?? result.error;
  return {
    start: () => starting.mutate(),
    isIdle: starting.isIdle,
    isRunning: !error && !starting.isIdle && (isOver ? status === "COMPLETED" && !result.data : true),
    progress: node.data?.progress ?? null,
    why: isWaiting || (isOver && status !== "COMPLETED") ? (why.data?.text ?? null) : null,
    hasFailed: isOver && status !== "COMPLETED",
    error,
    result: status === "COMPLETED" ? (result.data?.result as T | undefined) : undefined,
  };
}

/** Whether the server was asked for what needs code that it does not have. */
export const needsCode = (error: unknown) => error instanceof ApiError && error.status === 422;

type State = ReturnType<typeof useByWorker>;

/** How far it is, or why it cannot be done, and what to type where it can. */
export function ByWorker({ state, label }: { state: State; label: string }) {
  if (state.error) {
    const { missing, command } = state.error instanceof ApiError ? state.error.problem : {};
    return (
      <div className="flex flex-col gap-2">
        <Failure error={state.error} className="m-0!" />
        {missing && (
          <p>
            Missing: <code className="font-mono text-xs">{missing}</code>
          </p>
        )}
        {command && <Command text={command} />}
      </div>
    );
  }
  if (!state.isRunning && !state.hasFailed) return null;
  return (
    <div role={state.hasFailed ? "alert" : "status"} className="space-y-2">
      {state.isRunning && (
        <p className="flex items-center gap-3">
          {label}
          <progress
            aria-label={label}
            className="h-1.5 min-w-0 flex-1 accent-[var(--accent)]"
            value={state.progress?.fraction ?? undefined}
            max={1}
          />
          {state.progress && (
            <span className="text-xs text-ink-2 tabular">
              {state.progress.done.toLocaleString()}
              {state.progress.total !== null && ` of ${state.progress.total.toLocaleString()}`}{" "}
              {state.progress.message}
            </span>
          )}
        </p>
      )}
      {state.why && (
        <pre className="max-h-60 overflow-auto rounded-md border border-line bg-canvas p-3 font-mono text-xs leading-5 whitespace-pre-wrap">
          {state.why}
        </pre>
      )}
    </div>
  );
}
