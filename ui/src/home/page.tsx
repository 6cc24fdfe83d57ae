import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, ask, type Schemas } from "@/api/client";
import { unservedQuery, workflowsQuery } from "@/api/queries";
import { words } from "@/api/tables";
import type { Filter } from "@/runs/filter";
import { NodesBar } from "@/runs/nodes-bar";
import { Command } from "@/ui/copy";
import { Card, PageHead } from "@/ui/page";
import { Empty, Failure, Loading } from "@/ui/states";
import { Status } from "@/ui/status";
import { Time } from "@/ui/time";
import { Unserved } from "@/workers/unserved";
import { Activity } from "./activity";
import { Pipelines } from "./pipelines";

type Run = Schemas["RunRecord"];

const runs = (filter: Filter, limit: number) => ({
  queryKey: ["runs", "home", filter, limit],
  queryFn: () => ask(api.GET("/api/v1/runs", { params: { query: { ...filter, limit } } })),
  refetchInterval: 5_000,
});

/** What needs a person, what runs, and how it went lately. Every number leads to the list it counts. */
export function HomePage() {
  const counts = useQuery({
    queryKey: ["counts", "status"],
    queryFn: () => ask(api.GET("/api/v1/runs/counts", { params: { query: { by: "status" } } })),
    refetchInterval: 5_000,
  });
  const unserved = useQuery(unservedQuery);
  const workflows = useQuery(workflowsQuery);
  const none = counts.data && counts.data.total === 0;
  return (
    <>
      <PageHead title="Home" />
      <div className="space-y-4 p-4 pt-1">
        {unserved.data && <Unserved report={unserved.data} />}
        {counts.error && <Failure error={counts.error} className="m-0!" />}
        {none ? (
          <Card>
            <Empty title="Nothing has run yet">
              <p className="mb-3">
                {workflows.data?.length ? (
                  <Link to="/workflows" className="text-accent underline">
                    Start one of your workflows
                  </Link>
                ) : (
                  "Begin with an example, which fails on purpose, so that there is something to look at:"
                )}
              </p>
              <Command text="stepwell demo" />
            </Empty>
          </Card>
        ) : (
          <>
            <Numbers counts={counts.data?.counts ?? []} />
            <div className="grid gap-4 xl:grid-cols-2">
              <RunsCard
                title="Needs attention"
                filter={{ status: ["FAILED", "PAUSED"] }}
                empty="Nothing has failed, and nothing waits for a person."
              />
              <RunsCard
                title="Running"
                filter={{ status: ["PENDING", "RUNNING", "CANCELLING"] }}
                empty="Nothing runs at the moment."
              />
            </div>
            <Pipelines />
            <Activity />
          </>
        )}
      </div>
    </>
  );
}

type Count = Schemas["RunCount"];

function Numbers({ counts }: { counts: readonly Count[] }) {
  const shown = counts.filter((each) => each.count > 0);
  return (
    <ul className="grid grid-cols-[repeat(auto-fit,minmax(6.5rem,1fr))] gap-3">
      {shown.map((each) => (
        <li key={each.value}>
          <Link
            to="/runs"
            search={{ status: [each.value as Run["status"]] }}
            data-status={each.value}
            className="block rounded-xl border border-line border-t-[3px] border-t-[var(--st)] bg-paper px-4 py-3 hover:bg-hover"
          >
            <span className="block text-2xl font-semibold tracking-tight tabular">
              {each.exact ? "" : "≥ "}
              {each.count.toLocaleString()}
            </span>
            <Status status={each.value} plain />
          </Link>
        </li>
      ))}
    </ul>
  );
}

function RunsCard({ title, filter, empty }: { title: string; filter: Filter; empty: string }) {
  const { data, error, isPending, refetch } = useQuery(runs(filter, 8));
  return (
    <Card
      title={title}
      aside={
        <Link to="/runs" search={filter} className="text-xs text-accent hover:underline">
          All of them
        </Link>
      }
    >
      {error && <Failure error={error} retry={() => void refetch()} />}
      {isPending ? (
        <Loading rows={4} />
      ) : !data ? null : data.items.length === 0 ? (
        <p className="px-4 py-8 text-center text-[13px] text-ink-3">{empty}</p>
      ) : (
        <ul className="divide-y divide-line">
          {data.items.map((run) => (
            <li key={run.id}>
              <Link
                to="/runs/$runId"
                params={{ runId: run.id }}
                className="grid grid-cols-[6.5rem_minmax(0,1fr)_4rem] items-center gap-3 px-4 py-2 text-[13px] hover:bg-hover sm:grid-cols-[6.5rem_minmax(0,1fr)_5rem_4rem]"
              >
                <Status status={run.status} className="justify-self-start" />
                <span className="min-w-0 truncate font-medium">
                  {run.workflow}
                  {run.error ? (
                    <span className="ml-2 font-normal text-danger">{run.error}</span>
                  ) : (
                    run.reason && <span className="ml-2 font-normal text-ink-3">{words(run.reason)}</span>
                  )}
                </span>
                <NodesBar run={run} className="hidden! sm:flex!" />
                <span className="text-right text-ink-3">
                  <Time at={run.created_at} />
                </span>
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
