import { Link } from "@tanstack/react-router";
import { GitFork } from "lucide-react";
import { words } from "@/api/tables";
import { TraceLink } from "@/shell/environment";
import { Id } from "@/ui/copy";
import { Status, StatusBar } from "@/ui/status";
import { Lasting, Time } from "@/ui/time";
import { RunActions } from "./actions";
import { isBuilt, type RunDetail } from "./data";
import { Slower } from "./usual";
import { Watch } from "./watch";
import { RunWhy } from "./why";

export function RunHead({ run }: { run: RunDetail }) {
  const done = run.nodes_total - run.nodes_open;
  return (
    <header className="space-y-2 bg-paper px-4 pt-3.5 pb-3">
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
        <Status status={run.status} />
        {run.reason && <span className="text-xs text-ink-2">{words(run.reason)}</span>}
        <span className="flex-1" />
        <Watch run={run} />
        <RunActions run={run} />
      </div>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-xs text-ink-2">
        <Id text={run.id} />
        <TraceLink run={run.id} />
        <span>
          started <Time at={run.started_at ?? run.created_at} />
        </span>
        <span>
          {run.ended_at ? "took" : "for"} <Lasting from={run.started_at} to={run.ended_at} />
        </span>
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
            className="rounded bg-hover px-1.5 py-px text-2xs hover:text-ink"
          >
            {name}={value}
          </Link>
        ))}
        <span className="flex min-w-40 flex-1 items-center gap-2">
          <StatusBar counts={run.counts} />
          <span className="tabular whitespace-nowrap">
            {done.toLocaleString()} of {run.nodes_total.toLocaleString()}
          </span>
        </span>
      </div>
      <RunWhy run={run} />
    </header>
  );
}
