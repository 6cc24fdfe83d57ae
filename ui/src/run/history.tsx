import { useQuery } from "@tanstack/react-query";
import { api, ask } from "@/api/client";
import { What, Who } from "@/audit/entries";
import { Card } from "@/ui/page";
import { Failure, Loading } from "@/ui/states";
import { Time } from "@/ui/time";
import type { RunDetail } from "./data";

const SHOWN = 50;

/** Who asked for what of this run, when, from where and why. */
export function History({ run }: { run: RunDetail }) {
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ["history", run.id, run.seq],
    queryFn: () =>
      ask(
        api.GET("/api/v1/runs/{run_id}/audit-log", {
          params: { path: { run_id: run.id }, query: { limit: SHOWN } },
        }),
      ),
    placeholderData: (before) => before,
  });
  return (
    <Card title="Who did what">
      {isPending ? (
        <Loading rows={2} />
      ) : error ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : data.items.length === 0 ? (
        <p className="p-4 text-[13px] text-ink-3">A program started it, and nobody has asked for anything.</p>
      ) : (
        <ul className="divide-y divide-line text-[13px]">
          {data.items.map((entry) => (
            <li key={entry.id} className="px-4 py-2">
              <div className="flex items-baseline gap-3">
                <span className="min-w-0 flex-1 break-words">
                  <What entry={entry} />
                </span>
                <span className="truncate">
                  <Who entry={entry} />
                </span>
                <Time at={entry.at} />
              </div>
              {entry.reason && <p className="mt-0.5 break-words text-ink-2">{entry.reason}</p>}
            </li>
          ))}
          {data.next && (
            <li className="px-4 py-2 text-xs text-ink-3">Older entries: stepwell audit-log {run.id}</li>
          )}
        </ul>
      )}
    </Card>
  );
}
