import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, ask, type Schemas } from "@/api/client";
import { Card } from "@/ui/page";
import { Empty, Failure, Loading } from "@/ui/states";
import { Status } from "@/ui/status";
import { duration, Lasting, Time } from "@/ui/time";

type Run = Schemas["RunRecord"];

/** The latest runs of a workflow: how long they took, as bars, and how they ended. */
export function Recent({ name }: { name: string }) {
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ["runs", "recent", name],
    queryFn: () => ask(api.GET("/api/v1/runs", { params: { query: { workflow: name, limit: 50 } } })),
    refetchInterval: 5_000,
  });
  if (isPending) return <Loading />;
  if (!data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.items.length === 0) return <Empty title="It has never run" />;
  return (
    <div className="grid items-start gap-4 p-4 xl:grid-cols-2">
      <Card title="How long its runs took" aside={<Median runs={data.items} />}>
        <Durations runs={[...data.items].reverse()} />
      </Card>
      <Card title="Latest runs">
        <ul className="divide-y divide-line">
          {data.items.slice(0, 20).map((run) => (
            <li key={run.id}>
              <Link
                to="/runs/$runId"
                params={{ runId: run.id }}
                className="flex items-center gap-3 px-4 py-2 text-[13px] hover:bg-hover"
              >
                <Status status={run.status} />
                <span className="min-w-0 flex-1 truncate font-mono text-xs text-ink-2">{run.id}</span>
                <Lasting from={run.started_at} to={run.ended_at} />
                <span className="w-16 text-right text-ink-3">
                  <Time at={run.created_at} />
                </span>
              </Link>
            </li>
          ))}
        </ul>
      </Card>
    </div>
  );
}

function Median({ runs }: { runs: Run[] }) {
  const seconds = runs.flatMap((run) => (run.seconds === null ? [] : [run.seconds])).sort((a, b) => a - b);
  const middle = seconds[Math.floor(seconds.length / 2)];
  return middle === undefined ? null : <span className="text-xs text-ink-3">median {duration(middle)}</span>;
}

function Durations({ runs }: { runs: Run[] }) {
  const longest = Math.max(0.001, ...runs.map((run) => run.seconds ?? 0));
  return (
    <section
      className="flex h-44 items-end gap-1 p-4"
      aria-label={`Durations of the last ${runs.length} runs, the longest ${duration(longest)}`}
    >
      {runs.map((run) => (
        <Link
          key={run.id}
          to="/runs/$runId"
          params={{ runId: run.id }}
          title={`${run.status.toLowerCase()}, ${run.seconds === null ? "not ended" : duration(run.seconds)}`}
          aria-label={`${run.id}: ${run.status.toLowerCase()}`}
          data-status={run.status}
          className="min-w-1 flex-1 rounded-t-sm bg-[var(--st)] hover:opacity-75"
          style={{ height: `${Math.max(3, (100 * (run.seconds ?? longest)) / longest)}%` }}
        />
      ))}
    </section>
  );
}
