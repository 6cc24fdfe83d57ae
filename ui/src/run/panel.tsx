import { useQuery } from "@tanstack/react-query";
import clsx from "clsx";
import { RotateCcw, X } from "lucide-react";
import { useState } from "react";
import { ROOT } from "@/api/client";
import { words } from "@/api/tables";
import { TABS } from "@/router";
import { TraceLink } from "@/shell/environment";
import { useSession } from "@/shell/session";
import { Button, IconButton } from "@/ui/button";
import { Command, Id } from "@/ui/copy";
import { Json } from "@/ui/json";
import { Empty, Failure, Loading } from "@/ui/states";
import { Status } from "@/ui/status";
import { duration, Lasting, Time } from "@/ui/time";
import { type NodeDetail, nodeQuery, type RunDetail } from "./data";
import { EffectsTab } from "./effects";
import { LogsView } from "./logs";
import { ProofTab } from "./proof";
import { useRunSearch } from "./search";
import { SteerDialog } from "./steer";
import { Lines, WhyTab } from "./why";

type Tab = (typeof TABS)[number];

const LABELS: Record<Tab, string> = {
  why: "Why",
  attempts: "Attempts",
  output: "Output",
  config: "Config",
  effects: "Effects",
  logs: "Logs",
  proof: "Proof",
};

const RETRIABLE = new Set(["FAILED", "COMPLETED", "CANCELLED", "INTERRUPTED", "UPSTREAM_FAILED"]);

/** Everything about one node of a run. */
export function Panel({ run, node, onClose }: { run: RunDetail; node: string; onClose: () => void }) {
  const { search, change } = useRunSearch();
  const { may } = useSession();
  const { data, error, isPending, refetch } = useQuery(nodeQuery(run.id, node));
  const [again, setAgain] = useState(false);
  const tab = search.tab ?? "why";
  return (
    <aside
      aria-label="Node"
      className="flex max-h-[70vh] min-h-0 w-full shrink-0 flex-col border-t border-line bg-paper lg:max-h-none lg:w-[27rem] lg:border-t-0 lg:border-l xl:w-[31rem]"
    >
      <header className="flex items-start gap-2 px-4 pt-3 pb-2">
        <div className="min-w-0 flex-1 space-y-1">
          <h2 className="text-[15px] font-semibold break-words">{data?.name ?? node}</h2>
          {data && (
            <div className="flex flex-wrap items-center gap-2 text-xs text-ink-2">
              <Status status={data.status} />
              {data.reason && <span>{words(data.reason)}</span>}
              {data.seconds !== null && <span>{duration(data.seconds)}</span>}
              <Id text={data.id} />
              <TraceLink run={run.id} node={data.id} />
            </div>
          )}
          {data?.progress && <Progress progress={data.progress} />}
        </div>
        {data && may("run") && RETRIABLE.has(data.status) && (
          <Button small icon={<RotateCcw size={13} />} onClick={() => setAgain(true)}>
            Run again
          </Button>
        )}
        <IconButton label="Close (Esc)" onClick={onClose}>
          <X size={16} />
        </IconButton>
      </header>
      <div
        role="tablist"
        aria-label="About the node"
        className="flex gap-1 overflow-x-auto border-b border-line px-3"
      >
        {TABS.map((each) => (
          <button
            key={each}
            type="button"
            role="tab"
            aria-selected={each === tab}
            onClick={() => change({ tab: each })}
            className={clsx(
              "-mb-px border-b-2 px-2 py-1.5 text-xs font-medium whitespace-nowrap",
              each === tab ? "border-accent text-ink" : "border-transparent text-ink-2 hover:text-ink",
            )}
          >
            {LABELS[each]}
            {each === "attempts" && data && data.attempts > 1 && ` ${data.attempts}`}
          </button>
        ))}
      </div>
      <div className="flex min-h-0 flex-1 flex-col overflow-auto" role="tabpanel" aria-label={LABELS[tab]}>
        {isPending ? (
          <Loading rows={5} />
        ) : error ? (
          <Failure error={error} retry={() => void refetch()} />
        ) : (
          <Content tab={tab} run={run} node={data} />
        )}
      </div>
      {again && <SteerDialog run={run} verb="reattempt" node={node} onClose={() => setAgain(false)} />}
    </aside>
  );
}

function Progress({ progress }: { progress: NonNullable<NodeDetail["progress"]> }) {
  const percent = progress.fraction === null ? null : Math.round(100 * progress.fraction);
  return (
    <div className="flex items-center gap-2 text-xs text-ink-2">
      <span
        role="progressbar"
        aria-label={progress.message ?? "Progress"}
        aria-valuenow={percent ?? undefined}
        aria-valuemin={0}
        aria-valuemax={100}
        className="h-1.5 flex-1 overflow-hidden rounded-full bg-line"
      >
        <span
          className="block h-full rounded-full bg-[var(--st-running)]"
          style={{ width: `${percent ?? 30}%` }}
        />
      </span>
      <span className="tabular whitespace-nowrap">
        {progress.done.toLocaleString()}
        {progress.total !== null && ` of ${progress.total.toLocaleString()}`} {progress.message}
      </span>
    </div>
  );
}

function Content({ tab, run, node }: { tab: Tab; run: RunDetail; node: NodeDetail }) {
  switch (tab) {
    case "why":
      return <WhyTab run={run} node={node.id} />;
    case "attempts":
      return <AttemptsTab node={node} />;
    case "output":
      return <OutputTab run={run} node={node} />;
    case "config":
      return <ConfigTab node={node} />;
    case "effects":
      return <EffectsTab run={run} node={node} />;
    case "logs":
      return <LogsView run={run} node={node.id} />;
    case "proof":
      return <ProofTab run={run} node={node} />;
  }
}

function AttemptsTab({ node }: { node: NodeDetail }) {
  const { search, change } = useRunSearch();
  if (node.attempt_list.length === 0) return <Empty title="No attempt yet" />;
  const chosen = search.attempt ?? node.attempt_list.at(-1)!.number;
  return (
    <ol className="divide-y divide-line">
      {[...node.attempt_list].reverse().map((attempt) => (
        <li
          key={attempt.number}
          className={clsx("px-4 py-3", attempt.number === chosen && "bg-accent-soft/40")}
        >
          <button
            type="button"
            className="flex w-full flex-wrap items-center gap-2 text-left text-[13px]"
            aria-expanded={attempt.number === chosen}
            onClick={() => change({ attempt: attempt.number })}
          >
            <span className="font-medium">Attempt {attempt.number}</span>
            <Status status={attempt.status} />
            <span className="flex-1" />
            <span className="text-xs text-ink-2">
              <Lasting from={attempt.started_at} to={attempt.ended_at} /> · <Time at={attempt.started_at} />
            </span>
          </button>
          {attempt.number === chosen && (
            <div className="mt-2 space-y-2">
              <p className="text-xs text-ink-2">
                on <span className="font-mono">{attempt.worker}</span>
              </p>
              {attempt.error && (
                <div className="rounded-md border border-danger/30 bg-danger-soft p-3 text-danger">
                  <p className="text-[13px] font-medium break-words">
                    {attempt.error.type}: {attempt.error.message}
                  </p>
                  {attempt.error.traceback && (
                    <section
                      aria-label="Traceback"
                      // biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by keys
                      tabIndex={0}
                      className="mt-2 max-h-72 overflow-auto font-mono text-2xs leading-4 whitespace-pre"
                    >
                      {attempt.error.traceback}
                    </section>
                  )}
                </div>
              )}
              {Object.keys(attempt.outcome).length > 0 && <Json value={attempt.outcome} />}
            </div>
          )}
        </li>
      ))}
    </ol>
  );
}

function OutputTab({ run, node }: { run: RunDetail; node: NodeDetail }) {
  if (!node.output) return <Empty title="No output">It has not completed, or returned nothing.</Empty>;
  const { output } = node;
  return (
    <div className="space-y-3 p-4">
      {output.inline ? (
        <Json value={output.value} />
      ) : (
        <p className="text-[13px] text-ink-2">
          It is large.{" "}
          <a
            className="text-accent underline"
            href={`${ROOT}${output.href}`}
            target="_blank"
            rel="noreferrer"
          >
            Open it
          </a>
        </p>
      )}
      <p className="text-xs break-all text-ink-3">
        {output.size.toLocaleString()} bytes, SHA-256 {output.sha256}
      </p>
      <Command text={`stepwell show ${run.id} ${node.name} --json`} />
    </div>
  );
}

function ConfigTab({ node }: { node: NodeDetail }) {
  const rendered = node.attempt_list.at(-1)?.config ?? null;
  const written = Object.keys(node.config).length > 0;
  return (
    <div className="space-y-3 p-4">
      <dl className="grid grid-cols-[6rem_1fr] gap-y-1 text-xs">
        <dt className="text-ink-3">Runs</dt>
        <dd className="font-mono break-all">{node.job ?? "a method of its class"}</dd>
        <dt className="text-ink-3">Depends on</dt>
        <dd className="break-words">{node.depends_on.length ? node.depends_on.join(", ") : "nothing"}</dd>
        <dt className="text-ink-3">Level</dt>
        <dd>{node.level}</dd>
        <dt className="text-ink-3">Queue</dt>
        <dd>{node.queue}</dd>
      </dl>
      {written && (
        <section className="space-y-1">
          <h3 className="text-2xs font-medium tracking-wide text-ink-3 uppercase">As it is written</h3>
          <Json value={node.config} />
        </section>
      )}
      {rendered !== null && (
        <section className="space-y-1">
          <h3 className="text-2xs font-medium tracking-wide text-ink-3 uppercase">As it was rendered</h3>
          <Json value={rendered} />
        </section>
      )}
      {!written && rendered === null && <Lines text="It takes no arguments." />}
    </div>
  );
}
