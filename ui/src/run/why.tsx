import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { CircleHelp } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import { allows } from "@/api/tables";
import { useSession } from "@/shell/session";
import { Button } from "@/ui/button";
import { Command } from "@/ui/copy";
import { Failure, Loading } from "@/ui/states";
import { type RunDetail, whyQuery } from "./data";
import { type RunVerb, SteerDialog } from "./steer";

const ADVISED: RunVerb[] = ["retry", "resume"];

type Cause = Schemas["CauseRecord"];

/** Why a run stands still or has failed, in a line below its name, with what helps. */
export function RunWhy({ run }: { run: RunDetail }) {
  const wanted = run.status === "FAILED" || run.status === "PAUSED" || run.status === "PENDING";
  const { data } = useQuery({ ...whyQuery(run.id, null), enabled: wanted });
  if (!wanted || !data) return null;
  const bad = run.status === "FAILED";
  return (
    <details
      className={
        bad
          ? "rounded-lg border border-danger/30 bg-danger-soft px-3 py-2 text-[13px]"
          : "rounded-lg border border-warn/30 bg-warn-soft px-3 py-2 text-[13px]"
      }
    >
      <summary className={`cursor-pointer truncate font-medium ${bad ? "text-danger" : "text-warn"}`}>
        {firstLine(data.text)}
      </summary>
      <div className="mt-2 space-y-2">
        <Lines text={data.text} />
        {commandsOf(data.advice).map((command) => (
          <Command key={command} text={command} />
        ))}
        <Helpers run={run} advice={data.advice} />
      </div>
    </details>
  );
}

/** The chain from a node to the root cause. */
export function WhyTab({ run, node }: { run: RunDetail; node: string }) {
  const { data, error, isPending, refetch } = useQuery(whyQuery(run.id, node));
  if (isPending) return <Loading rows={3} />;
  if (error) return <Failure error={error} retry={() => void refetch()} />;
  return (
    <div className="space-y-3 p-4">
      <ol className="space-y-1">
        {data.causes.map((cause, index) => (
          <CauseItem key={index} cause={cause} />
        ))}
      </ol>
      <Lines text={data.text} />
      {data.advice.length > 0 && (
        <section className="space-y-1.5">
          <h3 className="text-2xs font-medium tracking-wide text-ink-3 uppercase">What helps</h3>
          {data.advice.map((each) => (
            <p key={each} className="text-[13px] break-words text-ink-2">
              {each}
            </p>
          ))}
          <Helpers run={run} advice={data.advice} />
        </section>
      )}
    </div>
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

function CauseItem({ cause }: { cause: Cause }) {
  const navigate = useNavigate({ from: "/runs/$runId" });
  return (
    <li className="text-[13px]">
      <div className="flex items-start gap-2 rounded-md border border-line bg-canvas px-2.5 py-1.5">
        <CircleHelp size={14} className="mt-0.5 shrink-0 text-ink-3" />
        <span className="min-w-0 flex-1">
          <span className="font-medium">{cause.kind.replaceAll("_", " ")}</span>
          {cause.name && cause.node && (
            <>
              {" "}
              <button
                type="button"
                className="text-accent hover:underline"
                onClick={() =>
                  void navigate({ search: (now) => ({ ...now, node: cause.node ?? undefined }) })
                }
              >
                {cause.name}
              </button>
            </>
          )}
          {cause.attempt !== null && <span className="text-ink-3"> attempt {cause.attempt}</span>}
        </span>
      </div>
      {cause.because.length > 0 && (
        <ol className="mt-1 ml-3.5 space-y-1 border-l-2 border-line pl-3">
          {cause.because.map((each, index) => (
            <CauseItem key={index} cause={each} />
          ))}
        </ol>
      )}
    </li>
  );
}

const firstLine = (text: string) => text.split("\n").find((line) => line.trim()) ?? text;

/** The commands that are quoted in advice, as in `stepwell retry ID`. */
export const commandsOf = (advice: string[]) => [
  ...new Set(advice.flatMap((each) => [...each.matchAll(/`(stepwell [^`]+)`/g)].map((match) => match[1]!))),
];

export function Lines({ text }: { text: string }) {
  return (
    <pre className="overflow-auto rounded-md border border-line bg-canvas p-3 font-mono text-xs leading-5 break-words whitespace-pre-wrap">
      {text}
    </pre>
  );
}
