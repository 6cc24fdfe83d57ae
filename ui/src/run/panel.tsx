import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import clsx from "clsx";
import { History, RotateCcw, X } from "lucide-react";
import { useState } from "react";
import { conditionWords, reasonWords } from "@/api/reasons";
import { type NodeStatus, nodeHasEnded, symbolOf, words } from "@/api/tables";
import { TABS } from "@/router";
import { TraceLink } from "@/shell/environment";
import { useSession } from "@/shell/session";
import { Button, IconButton } from "@/ui/button";
import { Id } from "@/ui/copy";
import { moveChoice } from "@/ui/fields";
import { Json } from "@/ui/json";
import { Failure, Loading } from "@/ui/states";
import { Status } from "@/ui/status";
import { duration } from "@/ui/time";
import { AttemptsTab } from "./attempts-tab";
import { type NodeDetail, nodeQuery, type RunDetail } from "./data";
import { EffectsTab } from "./effects";
import { LogsView } from "./logs";
import { InputTab, OutputTab } from "./output";
import { type Progress, ProgressBar } from "./progress";
import { ProofTab } from "./proof";
import { useRunSearch } from "./search";
import { SteerDialog } from "./steer";
import { Slower } from "./usual";
import { Lines, WhyTab } from "./why";

type Tab = (typeof TABS)[number];

const LABELS: Record<Tab, string> = {
  why: "Why",
  attempts: "Attempts",
  input: "Input",
  output: "Output",
  config: "Config",
  effects: "Effects",
  logs: "Logs",
  proof: "Proof",
};

const RETRIABLE = new Set(["FAILED", "COMPLETED", "CANCELLED", "INTERRUPTED", "UPSTREAM_FAILED"]);
/** A condition that did not hold is evaluated again; what was skipped with its parents follows them. */
const mayRunAgain = (node: NodeDetail) =>
  RETRIABLE.has(node.status) || (node.status === "SKIPPED" && node.reason === "condition");

type Props = {
  run: RunDetail;
  node: string;
  progress: Progress | undefined;
  /** The moment that is looked at, and the status of the node then. */
  past: { seq: number; status: NodeStatus | null } | null;
  onClose: () => void;
};

/** Everything about one node of a run. */
export function Panel({ run, node, progress, past, onClose }: Props) {
  const { search, change } = useRunSearch();
  const { may } = useSession();
  const { data, error, isPending, refetch } = useQuery(nodeQuery(run.id, node));
  const [again, setAgain] = useState(false);
  const tab = search.tab ?? "why";
  const latest = data?.attempt_list.at(-1);
  return (
    <aside
      aria-label="Node"
      // On narrow screens it is a sheet over the page, which has no room for both.
      className="fixed inset-x-0 top-12 bottom-14 z-20 flex min-h-0 flex-col bg-paper md:bottom-0 md:left-44 lg:static lg:z-auto lg:w-[27rem] lg:shrink-0 lg:border-l lg:border-line xl:w-[31rem]"
    >
      <header className="flex items-start gap-2 px-4 pt-3 pb-2">
        <div className="min-w-0 flex-1 space-y-1">
          <h2 className="text-[15px] font-semibold break-words">{data?.name ?? node}</h2>
          {data && (
            <div className="flex flex-wrap items-center gap-2 text-xs text-ink-2">
              <Status status={data.status} />
              {data.reason && <span>{reasonWords(data.reason)}</span>}
              {data.seconds !== null && data.status !== "SKIPPED" && <span>{duration(data.seconds)}</span>}
              <Id text={data.id} />
              <TraceLink run={run.id} node={data.id} />
              {data.child && (
                <Link
                  to="/runs/$runId"
                  params={{ runId: data.child }}
                  title={data.child}
                  className="text-accent hover:underline"
                >
                  performed by run <span className="font-mono">…{data.child.slice(-8)}</span>
                </Link>
              )}
              {latest && <Slower run={run} node={data.id} from={latest.started_at} to={latest.ended_at} />}
            </div>
          )}
          {data && !nodeHasEnded(data.status) && (progress ?? data.progress) && (
            <ProgressBar progress={(progress ?? data.progress)!} />
          )}
          {past && (
            <p className="rounded-md bg-warn-soft px-2 py-1 text-xs text-warn">
              <History size={12} aria-hidden="true" className="mr-1 inline align-[-2px]" />
              At entry {past.seq.toLocaleString()} it was{" "}
              <b className="font-medium">
                {past.status ? `${symbolOf(past.status)} ${words(past.status)}` : "not in the graph"}
              </b>
              . Below it is as it is now.
            </p>
          )}
        </div>
        {data && !past && may("run") && mayRunAgain(data) && (
          <Button small icon={<RotateCcw size={13} />} onClick={() => setAgain(true)}>
            {data.status === "SKIPPED" ? "Decide again" : "Run again"}
          </Button>
        )}
        <IconButton label="Close (Esc)" onClick={onClose}>
          <X size={16} />
        </IconButton>
      </header>
      <div
        role="tablist"
        aria-label="About the node"
        onKeyDown={moveChoice}
        className="flex gap-1 overflow-x-auto border-b border-line px-3"
      >
        {TABS.map((each) => (
          <button
            key={each}
            type="button"
            role="tab"
            aria-selected={each === tab}
            tabIndex={each === tab ? 0 : -1}
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
          <Content tab={tab} run={run} node={data} isPast={past !== null} />
        )}
      </div>
      {again && <SteerDialog run={run} verb="reattempt" node={node} onClose={() => setAgain(false)} />}
    </aside>
  );
}

type ContentProps = { tab: Tab; run: RunDetail; node: NodeDetail; isPast: boolean };

function Content({ tab, run, node, isPast }: ContentProps) {
  switch (tab) {
    case "why":
      return <WhyTab run={run} node={node.id} isPast={isPast} />;
    case "attempts":
      return <AttemptsTab node={node} />;
    case "input":
      return <InputTab run={run} node={node} />;
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
        {node.condition && (
          <>
            <dt className="text-ink-3">Runs if</dt>
            <dd className="font-mono break-all" title={node.condition}>
              {conditionWords(node.condition)}
            </dd>
          </>
        )}
        {node.join === "all" && (
          <>
            <dt className="text-ink-3">Skipped</dt>
            <dd>as soon as one of its parents was</dd>
          </>
        )}
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
