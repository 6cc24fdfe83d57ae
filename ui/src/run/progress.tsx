/** How far running nodes say they are. It is not in the journal, so it is asked for while the run is looked at. */

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, ask, type Schemas } from "@/api/client";
import type { RunDetail } from "./data";

export type Progress = Schemas["ProgressRecord"];
export type ProgressByNode = ReadonlyMap<string, Progress>;

const LOOK_EVERY = 1_500;
const NOTHING: ProgressByNode = new Map();

export function useProgress(run: RunDetail | undefined, isPast: boolean): ProgressByNode {
  const isWanted = run !== undefined && !isPast && (run.counts.RUNNING ?? 0) > 0;
  const { data } = useQuery({
    queryKey: ["progress", run?.id],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs/{run_id}/progress", { params: { path: { run_id: run!.id } }, signal })),
    enabled: isWanted,
    refetchInterval: LOOK_EVERY,
  });
  return useMemo(
    () => (isWanted && data ? new Map(data.map((each) => [each.node, each.progress])) : NOTHING),
    [isWanted, data],
  );
}

export function ProgressBar({ progress, label = true }: { progress: Progress; label?: boolean }) {
  const percent = progress.fraction === null ? null : Math.round(100 * progress.fraction);
  const words = `${progress.done.toLocaleString()}${
    progress.total === null ? "" : ` of ${progress.total.toLocaleString()}`
  }${progress.message ? ` ${progress.message}` : ""}`;
  return (
    <span className="flex min-w-0 items-center gap-2 text-xs text-ink-2" title={words}>
      <span
        role="progressbar"
        aria-label={progress.message ?? "Progress"}
        aria-valuenow={percent ?? undefined}
        aria-valuetext={words}
        aria-valuemin={0}
        aria-valuemax={100}
        className="h-1.5 min-w-8 flex-1 overflow-hidden rounded-full bg-line"
      >
        <span
          className="block h-full rounded-full bg-[var(--st-running)]"
          style={{ width: `${percent ?? 30}%` }}
        />
      </span>
      {label && <span className="truncate tabular">{words}</span>}
    </span>
  );
}
