import { Link } from "@tanstack/react-router";
import { GitFork, History } from "lucide-react";
import { type NodeStatus, nodeHasEnded, words } from "@/api/tables";
import { TraceLink } from "@/shell/environment";
import { Id } from "@/ui/copy";
import { Status, StatusBar } from "@/ui/status";
import { Lasting, Time } from "@/ui/time";
import { RunActions } from "./actions";
import { isBuilt, type RunDetail } from "./data";
import { Slower } from "./usual";
import { Watch } from "./watch";
import { RunWhy } from "./why";

export type Counts = Partial<Record<NodeStatus, number>>;

const sumOf = (counts: Counts, has: (status: NodeStatus) => boolean) =>
  Object.entries(counts).reduce((sum, [status, count]) => sum + (has(status as NodeStatus) ? count : 0), 0);

/** From the root down to the node that this run performs. Each link is to a run, with the node on this path chosen. */
function Path({ run }: { run: RunDetail }) {
  const names = [run.root, ...run.ancestors.map((above) => above.name)];
  return (
    <nav aria-label="Path" className="flex flex-wrap items-center gap-x-1.5 text-xs text-ink-2">
      {run.ancestors.map((above, place) => (
        <span key={above.run} className="flex items-center gap-x-1.5">
          <Link
            to="/runs/$runId"
            params={{ runId: above.run }}
            search={{ node: above.node }}
            title={`run ${above.run} of ${above.workflow}`}
            className="max-w-60 truncate text-accent hover:underline"
          >
            {names[place]}
          </Link>
          <span aria-hidden="true">/</span>
        </span>
      ))}
      <span aria-current="page">{names.at(-1)}</span>
    </nav>
  );
}

type Props = {
  run: RunDetail;
  /** The moment that is looked at, and how many nodes had which status then. */
  past: { seq: number; counts: Counts } | null;
};

/** Of a moment in the past it shows what was done then; what else it says is of now, and says so. */
export function RunHead({ run, past }: Props) {
  const counts = past?.counts ?? run.counts;
  const total = past ? sumOf(past.counts, () => true) : run.nodes_total;
  const done = past ? sumOf(past.counts, nodeHasEnded) : run.nodes_total - run.nodes_open;
  return (
    <header className="space-y-2 bg-paper px-4 pt-3.5 pb-3">
      {run.ancestors.length > 0 && <Path run={run} />}
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <h1 className="flex min-w-0 items-center gap-2 text-lg font-semibold tracking-tight">
          {isBuilt(run) ? (
            <Link to="/runs" search={{ workflow: run.workflow }} className="truncate hover:underline">
              {run.workflow}
            </Link>
          ) : (
            <Link to="/workflows/$name" params={{ name: run.workflow }} className="truncate hover:underline">
              {run.workflow}
            </Link>
          )}
        </h1>
        {past && <span className="text-xs text-ink-2">now</span>}
        <Status status={run.status} />
        {run.reason && <span className="text-xs text-ink-2">{words(run.reason)}</span>}
        <span className="flex-1" />
        <Watch run={run} />
        <RunActions run={run} isPast={past !== null} />
      </div>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-xs text-ink-2">
        <Id text={run.id} />
        <TraceLink run={run.id} />
        <span>
          {run.started_at ? "started" : "created"} <Time at={run.started_at ?? run.created_at} />
        </span>
        {run.started_at && (
          <span>
            {run.ended_at ? "took" : "for"} <Lasting from={run.started_at} to={run.ended_at} />
          </span>
        )}
        <Slower run={run} from={run.started_at} to={run.ended_at} />
        {run.origin && (
          <span className="inline-flex items-center gap-1">
            <GitFork size={12} /> forked from
            <Link
              to="/runs/$runId"
              params={{ runId: run.origin.run }}
              className="font-mono text-accent hover:underline"
            >
              {run.origin.run.slice(0, 12)}…
            </Link>
            at {run.origin.seq}
          </span>
        )}
        {run.forks.length > 0 && (
          <Link
            to="/runs"
            search={{ fork_of: run.id }}
            className="inline-flex items-center gap-1 text-accent hover:underline"
          >
            <GitFork size={12} /> {run.forks.length} {run.forks.length === 1 ? "fork" : "forks"}
          </Link>
        )}
        {run.heals > 0 && (
          <span>switched to changed code {run.heals === 1 ? "once" : `${run.heals} times`}</span>
        )}
        {Object.entries(run.tags).map(([name, value]) => (
          <Link
            key={name}
            to="/runs"
            search={{ tag: [`${name}=${value}`] }}
            title={`${name}=${value}`}
            className="max-w-44 truncate rounded bg-hover px-1.5 py-px text-2xs hover:text-ink"
          >
            {name}={value}
          </Link>
        ))}
        <span className="flex min-w-40 flex-1 items-center gap-2">
          <StatusBar counts={counts} />
          <span className="tabular whitespace-nowrap">
            {done.toLocaleString()} of {total.toLocaleString()}
            {past && " then"}
          </span>
        </span>
      </div>
      {past ? (
        <p role="status" className="rounded-lg border border-accent/30 bg-accent-soft px-3 py-2 text-[13px]">
          <History size={14} aria-hidden="true" className="mr-1.5 inline align-[-2px] text-accent" />
          You look at the run as it was after entry <b>{past.seq.toLocaleString()}</b> of{" "}
          {run.seq.toLocaleString()}. To act on it, go back to now, or fork from here.
        </p>
      ) : (
        <RunWhy run={run} />
      )}
    </header>
  );
}
