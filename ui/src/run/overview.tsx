import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { api, ask } from "@/api/client";
import { hasEnded } from "@/api/tables";
import { Command, Id } from "@/ui/copy";
import { Json } from "@/ui/json";
import { Card } from "@/ui/page";
import { Failure, Loading } from "@/ui/states";
import { duration, Time } from "@/ui/time";
import { attemptsQuery } from "./attempts";
import type { RunDetail } from "./data";
import { count, failuresQuery } from "./failures";
import { History } from "./history";
import { useRunSearch } from "./search";

/** Nodes that are named of each kind of error. */
const NAMED = 3;

type Props = { run: RunDetail; onSelect: (node: string) => void };

/** A run as a whole: what went in and came out, what failed by kind of error, and its numbers. */
export function Overview({ run, onSelect }: Props) {
  return (
    <div className="min-h-0 flex-1 overflow-auto">
      <div className="grid items-start gap-4 p-4 xl:grid-cols-2">
        {(run.counts.FAILED ?? 0) + (run.counts.INTERRUPTED ?? 0) > 0 && (
          <Failures run={run} onSelect={onSelect} />
        )}
        <Card title="Input">
          <div className="p-3">
            <Json value={run.input} />
          </div>
        </Card>
        {hasEnded(run.status) && <Result run={run} />}
        <Numbers run={run} />
        <Facts run={run} />
        <History run={run} />
        {(run.origin || run.forks.length > 0) && <Lineage run={run} />}
      </div>
    </div>
  );
}

function Failures({ run, onSelect }: Props) {
  const { change } = useRunSearch();
  const { data, error, isPending, refetch } = useQuery(failuresQuery(run.id));
  const names = useQuery(attemptsQuery(run.id));
  const nameOf = useMemo(
    () => new Map((names.data?.all ?? []).map((attempt) => [attempt.node, attempt.name])),
    [names.data],
  );
  return (
    <Card
      className="xl:col-span-2"
      title="What failed"
      aside={
        data && (
          <span className="text-xs text-ink-3 tabular">
            {data.exact ? "" : "≥ "}
            {count(data.count, "node")}, {count(data.groups.length, "kind")} of error
          </span>
        )
      }
    >
      {isPending ? (
        <Loading rows={2} />
      ) : error ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : (
        <ul className="divide-y divide-line">
          {data.groups.map((group) => (
            <li
              key={`${group.type} ${group.message}`}
              className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2.5 text-[13px]"
            >
              <button
                type="button"
                data-status="FAILED"
                title="Show these nodes in the table"
                className="w-14 text-right font-semibold text-[var(--st)] tabular hover:underline"
                onClick={() =>
                  change({
                    view: "table",
                    find: undefined,
                    status: undefined,
                    error: group.type ?? undefined,
                  })
                }
              >
                {group.count.toLocaleString()} ×
              </button>
              <span className="min-w-48 flex-1 break-words">
                {group.type && <b className="font-semibold">{group.type}: </b>}
                {group.message.slice(0, 500)}
              </span>
              <span className="flex flex-wrap gap-1.5">
                {group.nodes.slice(0, NAMED).map((node) => (
                  <button
                    key={node}
                    type="button"
                    className="max-w-40 truncate rounded bg-hover px-1.5 py-px text-xs text-accent hover:underline"
                    onClick={() => onSelect(node)}
                  >
                    {nameOf.get(node) ?? node}
                  </button>
                ))}
                {group.count > NAMED && (
                  <span className="text-xs text-ink-3">
                    and {(group.count - NAMED).toLocaleString()} more
                  </span>
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Result({ run }: { run: RunDetail }) {
  const { data, error, isPending } = useQuery({
    queryKey: ["result", run.id, run.seq],
    queryFn: () => ask(api.GET("/api/v1/runs/{run_id}/results", { params: { path: { run_id: run.id } } })),
  });
  return (
    <Card title="Result">
      <div className="p-3">
        {isPending ? (
          <Loading rows={2} />
        ) : error ? (
          <Failure error={error} className="m-0!" />
        ) : data.result === null ? (
          <p className="text-[13px] text-ink-3">
            {run.status === "COMPLETED" ? "Nothing was returned." : "It has none."}
          </p>
        ) : (
          <Json value={data.result} />
        )}
      </div>
    </Card>
  );
}

function Numbers({ run }: { run: RunDetail }) {
  const { data, error, isPending } = useQuery({
    queryKey: ["metrics", run.id, hasEnded(run.status) ? run.seq : "now"],
    queryFn: () => ask(api.GET("/api/v1/runs/{run_id}/metrics", { params: { path: { run_id: run.id } } })),
    refetchInterval: hasEnded(run.status) ? false : 5_000,
  });
  const rows = data && [
    ["Attempts", data.attempts.toLocaleString()],
    ["Tried again", data.retries.toLocaleString()],
    ["Workers lost", data.lost.toLocaleString()],
    ["Took", duration(data.wall_seconds)],
    ["At once, on average", data.average_active.toFixed(1)],
    ["At once, at most", data.most_active.toLocaleString()],
    ["Queued, at most", data.most_queued.toLocaleString()],
  ];
  return (
    <Card title="In numbers">
      {isPending ? (
        <Loading rows={3} />
      ) : error ? (
        <Failure error={error} />
      ) : (
        <dl className="grid grid-cols-2 gap-x-6 gap-y-1.5 p-4 text-[13px]">
          {rows!.map(([name, value]) => (
            <div key={name} className="flex justify-between gap-3">
              <dt className="text-ink-2">{name}</dt>
              <dd className="font-medium tabular">{value}</dd>
            </div>
          ))}
        </dl>
      )}
    </Card>
  );
}

function Facts({ run }: { run: RunDetail }) {
  return (
    <Card title="About it">
      <dl className="grid grid-cols-[8rem_1fr] gap-y-1.5 p-4 text-[13px]">
        <dt className="text-ink-2">Created</dt>
        <dd>
          <Time at={run.created_at} full />
        </dd>
        {run.deadline_at && (
          <>
            <dt className="text-ink-2">Deadline</dt>
            <dd>
              <Time at={run.deadline_at} full />
            </dd>
          </>
        )}
        <dt className="text-ink-2">Defined by</dt>
        <dd className="break-all">
          {run.target ??
            (run.document
              ? `document, version ${run.document.version ?? "not saved"}`
              : "a graph built at run time")}
        </dd>
        <dt className="text-ink-2">Graph</dt>
        <dd>
          <Id text={run.digest} />
        </dd>
        <dt className="text-ink-2">Priority</dt>
        <dd>{run.priority}</dd>
        <dt className="text-ink-2" title="A start with the same key gives this run">
          Key of its start
        </dt>
        <dd className="break-all">
          {run.idempotency_key ?? <span className="text-ink-3">none was given</span>}
        </dd>
      </dl>
      <div className="px-4 pb-4">
        <Command text={`stepwell show ${run.id}`} />
      </div>
    </Card>
  );
}

/** What the run was forked from, and its own forks, each to be compared with it. */
function Lineage({ run }: { run: RunDetail }) {
  const compare = (runId: string, otherId: string) => (
    <Link to="/compare/$runId/$otherId" params={{ runId, otherId }} className="text-accent hover:underline">
      Compare
    </Link>
  );
  return (
    <Card
      title="Forks"
      aside={
        run.forks.length > 0 && (
          <Link to="/runs" search={{ fork_of: run.id }} className="text-xs text-accent hover:underline">
            All of them
          </Link>
        )
      }
    >
      <ul className="divide-y divide-line text-[13px]">
        {run.origin && (
          <li className="flex items-center gap-3 px-4 py-2">
            <span className="text-ink-2">Its origin</span>
            <RunLink id={run.origin.run} />
            <span className="text-ink-3">
              {run.origin.node ? `before ${run.origin.node}` : `at ${run.origin.seq}`}
            </span>
            {compare(run.origin.run, run.id)}
          </li>
        )}
        {run.forks.slice(0, 20).map((fork) => (
          <li key={fork} className="flex items-center gap-3 px-4 py-2">
            <RunLink id={fork} />
            {compare(run.id, fork)}
          </li>
        ))}
      </ul>
    </Card>
  );
}

function RunLink({ id }: { id: string }) {
  return (
    <Link
      to="/runs/$runId"
      params={{ runId: id }}
      className="min-w-0 flex-1 truncate font-mono text-xs hover:underline"
    >
      {id}
    </Link>
  );
}
