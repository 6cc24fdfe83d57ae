/** Whether a run or a node is slower than it was in the latest runs that completed. */

import { useQuery } from "@tanstack/react-query";
import { Turtle } from "lucide-react";
import { api, ask } from "@/api/client";
import { duration, useNow } from "@/ui/time";
import type { RunDetail } from "./data";

/** With fewer times to compare with, nothing is unusual. */
const ENOUGH = 3;

type Props = { run: RunDetail; node?: string; from: string | null; to: string | null };

export function Slower({ run, node, from, to }: Props) {
  const { data } = useQuery({
    queryKey: ["usual", run.id, node],
    queryFn: () =>
      ask(api.GET("/api/v1/runs/{run_id}/usual", { params: { path: { run_id: run.id }, query: { node } } })),
    staleTime: 60_000,
    enabled: from !== null,
  });
  const now = useNow(from && !to && data ? 1_000 : null);
  if (!from || !data || data.count < ENOUGH) return null;
  const seconds = ((to ? Date.parse(to) : now) - Date.parse(from)) / 1_000;
  const { longest_seconds: longest, median_seconds: median, count } = data;
  if (seconds <= longest!) return null;
  return (
    <span
      className="inline-flex items-center gap-1 rounded-full border border-warn/40 bg-warn-soft px-2 py-px font-medium whitespace-nowrap text-warn"
      title={`The last ${count} times it took ${duration(median!)} in the middle, and ${duration(longest!)} at most.`}
    >
      <Turtle size={12} aria-hidden="true" /> slower than usual (usually {duration(median!)})
    </span>
  );
}
