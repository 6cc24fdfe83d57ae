import { useQuery } from "@tanstack/react-query";
import clsx from "clsx";
import { Fragment, useMemo, useState } from "react";
import type { Schemas } from "@/api/client";
import { allows, isBroken, NODE_STATUSES } from "@/api/tables";
import { useSession } from "@/shell/session";
import { Button } from "@/ui/button";
import { Command } from "@/ui/copy";
import { Failure, Loading } from "@/ui/states";
import { Time } from "@/ui/time";
import { type RunDetail, whyQuery } from "./data";
import { count } from "./failures";
import { useRunSearch } from "./search";
import { type RunVerb, SteerDialog } from "./steer";

const ADVISED: RunVerb[] = ["retry", "resume"];

/** Characters of a message that are shown; the panel of the attempt has all of it. */
const LONGEST = 2_000;

type Cause = Schemas["CauseRecord"];

/**
 * Why a run stands still or has failed, below its name, with what helps. What was raised comes first: it is what one came for.
 */
export function RunWhy({ run }: { run: RunDetail }) {
  const wanted = run.status === "FAILED" || run.status === "PAUSED" || run.status === "PENDING";
  const { data } = useQuery({ ...whyQuery(run.id, null), enabled: wanted });
  if (!wanted || !data) return null;
  const bad = run.status === "FAILED";
  const raised = raisedIn(data.causes);
  const [first, ...rest] = linesOf(data.text);
  return (
    <section
      aria-label="Why"
      className={clsx(
        "rounded-lg border px-3 py-2 text-[13px]",
        bad ? "border-danger/30 bg-danger-soft" : "border-warn/30 bg-warn-soft",
      )}
    >
      {raised && <Raised raised={raised} others={brokenOf(run) - 1} />}
      <details>
        <summary
          className={clsx(
            "cursor-pointer truncate",
            bad ? "text-danger" : "text-warn",
            !raised && "font-medium",
          )}
        >
          {first!.text.replace(/^run \S+ of (.*?) (?=failed|is|was|waits|did)/, "$1 ")}
        </summary>
        <div className="mt-2 space-y-2 text-ink">
          <Chain lines={rest} causes={data.causes} raised={raised} />
          <Advice run={run} advice={data.advice} />
        </div>
      </details>
    </section>
  );
}

type WhyProps = { run: RunDetail; node: string; isPast: boolean };

/** The chain from a node to the root cause: what was raised, what led there, what helps. While the past is looked at, nothing acts. */
export function WhyTab({ run, node, isPast }: WhyProps) {
  const { data, error, isPending, refetch } = useQuery(whyQuery(run.id, node));
  if (isPending) return <Loading rows={3} />;
  if (error) return <Failure error={error} retry={() => void refetch()} />;
  // Of what was raised and then overcome, the sentences tell.
  const raised = STANDS_STILL.has(data.status) ? raisedIn(data.causes) : null;
  return (
    <div className="space-y-4 p-4 text-[13px]">
      {raised && (
        <div className="rounded-lg border border-danger/30 bg-danger-soft px-3.5 py-3">
          <Raised raised={raised} large of={node} />
        </div>
      )}
      <Chain lines={linesOf(data.text)} causes={data.causes} raised={raised} />
      <Advice run={run} advice={data.advice} titled isPast={isPast} />
    </div>
  );
}

const STANDS_STILL: ReadonlySet<string> = new Set([
  "FAILED",
  "UPSTREAM_FAILED",
  "INTERRUPTED",
  "WAITING",
  "CANCELLED",
]);

type RaisedError = { type: string; message: string; cause: Cause };

/** The first exception in these causes, or in what is behind them. */
function raisedIn(causes: readonly Cause[]): RaisedError | null {
  for (const cause of causes) {
    const { type, message } = cause.detail as { type?: unknown; message?: unknown };
    if (typeof type === "string" && type) return { type, message: String(message ?? ""), cause };
    const behind = raisedIn(cause.because);
    if (behind) return behind;
  }
  return null;
}

const brokenOf = (run: RunDetail) =>
  NODE_STATUSES.filter(isBroken).reduce((sum, status) => sum + (run.counts[status] ?? 0), 0);

/** `of`: the node whose panel it is in, which needs not be named; `others`: how many other nodes failed. */
type RaisedProps = { raised: RaisedError; large?: boolean; of?: string; others?: number };

function Raised({ raised: { type, message, cause }, large, of, others = 0 }: RaisedProps) {
  const { change } = useRunSearch();
  const { node } = cause;
  return (
    <div className="space-y-0.5 text-danger">
      <p className={clsx("break-words", large ? "max-h-64 overflow-auto text-[15px]" : "line-clamp-4")}>
        <b className="font-semibold">{type}</b>
        {message && ": "}
        {message.slice(0, LONGEST)}
      </p>
      <p className="flex flex-wrap gap-x-2 text-xs">
        {node && node !== of && (
          <span>
            in{" "}
            <button
              type="button"
              className="font-medium underline"
              onClick={() => change({ node, tab: undefined })}
            >
              {cause.name}
            </button>
          </span>
        )}
        {cause.attempt !== null && node && (
          <button
            type="button"
            className="underline"
            title="Its traceback"
            onClick={() => change({ node, tab: "attempts", attempt: cause.attempt ?? undefined })}
          >
            attempt {cause.attempt}
          </button>
        )}
        {cause.at && <Time at={cause.at} />}
        {others > 0 && (
          <button
            type="button"
            className="underline"
            onClick={() => change({ view: "table", status: undefined, error: undefined, find: undefined })}
          >
            and {count(others, "other node")}
          </button>
        )}
      </p>
    </div>
  );
}

type Line = { depth: number; text: string };

/** The sentences of a text, without the advice at its end, which has a place of its own. */
const linesOf = (text: string): Line[] =>
  text
    .split("\n")
    .filter((line) => line.trim() && !line.startsWith("→"))
    .map((line) => ({ depth: Math.floor((line.length - line.trimStart().length) / 2), text: line.trim() }));

type ChainProps = { lines: readonly Line[]; causes: readonly Cause[]; raised: RaisedError | null };

/** The sentences, one behind the other; what was raised is said once, above. Nodes that are named lead to them. */
function Chain({ lines, causes, raised }: ChainProps) {
  const { change } = useRunSearch();
  const nodes = useMemo(() => new Map(namesIn(causes)), [causes]);
  const least = Math.min(...lines.map((line) => line.depth));
  return (
    <ol className="space-y-1.5">
      {lines.map(({ depth, text }, index) => (
        <li
          key={index}
          className={clsx(
            "break-words",
            depth > least && "border-l-2 border-line-strong/60 pl-2.5 text-ink-2",
          )}
          style={{ marginLeft: Math.max(0, depth - least - 1) * 12 }}
        >
          {partsOf(raised ? text.split(`: ${raised.type}: `)[0]! : text, nodes).map((part, at) =>
            nodes.has(part) ? (
              <button
                key={at}
                type="button"
                className="font-medium text-accent hover:underline"
                onClick={() => change({ node: nodes.get(part), tab: undefined })}
              >
                {part}
              </button>
            ) : (
              <Fragment key={at}>{part}</Fragment>
            ),
          )}
        </li>
      ))}
    </ol>
  );
}

function* namesIn(causes: readonly Cause[]): Generator<[string, string]> {
  for (const cause of causes) {
    if (cause.name && cause.node) yield [cause.name, cause.node];
    yield* namesIn(cause.because);
  }
}

/** A sentence in words; spaces stay where they are. */
const partsOf = (text: string, nodes: ReadonlyMap<string, string>) =>
  nodes.size === 0 ? [text] : text.split(/(\s+|[,;:](?=\s|$))/);

type AdviceProps = { run: RunDetail; advice: string[]; titled?: boolean; isPast?: boolean };

/** What helps, with its commands to copy and its requests as buttons. */
function Advice({ run, advice, titled, isPast }: AdviceProps) {
  if (advice.length === 0) return null;
  return (
    <section className="space-y-1.5">
      {titled && <h3 className="text-2xs font-medium tracking-wide text-ink-3 uppercase">What helps</h3>}
      {advice.map((each) => (
        <p key={each} className="break-words text-ink-2">
          {withoutCommands(each)
            .split("`")
            .map((part, index) =>
              index % 2 ? (
                <code key={index} className="rounded bg-hover px-1 font-mono text-xs break-all">
                  {part}
                </code>
              ) : (
                <Fragment key={index}>{part}</Fragment>
              ),
            )}
        </p>
      ))}
      {commandsOf(advice).map((command) => (
        <Command key={command} text={command} />
      ))}
      {!isPast && <Helpers run={run} advice={advice} />}
    </section>
  );
}

/** Buttons for the requests to the run that are advised; each shows first what it would touch. */
function Helpers({ run, advice }: { run: RunDetail; advice: string[] }) {
  const { may } = useSession();
  const [verb, setVerb] = useState<RunVerb | null>(null);
  const verbs = ADVISED.filter(
    (each) =>
      allows(each, run.status) &&
      commandsOf(advice).some((command) => command.startsWith(`stepwell ${each} ${run.id}`)),
  );
  if (!may("run") || verbs.length === 0) return null;
  return (
    <div className="flex gap-2">
      {verbs.map((each) => (
        <Button key={each} small look="primary" onClick={() => setVerb(each)}>
          {`${each[0]!.toUpperCase()}${each.slice(1)}…`}
        </Button>
      ))}
      {verb && <SteerDialog run={run} verb={verb} onClose={() => setVerb(null)} />}
    </div>
  );
}

/** The commands that are quoted in advice, as in `stepwell retry ID`. */
export const commandsOf = (advice: string[]) => [
  ...new Set(advice.flatMap((each) => [...each.matchAll(/`(stepwell [^`]+)`/g)].map((match) => match[1]!))),
];

/** Advice without the commands that are said another way beside them: they stand below, to be copied. */
const withoutCommands = (advice: string) => advice.replace(/(`[^`]+`) or `stepwell [^`]+`/g, "$1");

export function Lines({ text }: { text: string }) {
  return (
    <pre className="overflow-auto rounded-md border border-line bg-canvas p-3 font-mono text-xs leading-5 break-words whitespace-pre-wrap">
      {text}
    </pre>
  );
}
