import { Link } from "@tanstack/react-router";
import { ServerOff } from "lucide-react";
import type { Schemas } from "@/api/client";
import { quoted } from "@/runs/filter";
import { Command } from "@/ui/copy";

type Report = Schemas["UnservedReport"];
type Item = Report["items"][number];

const SHOWN = 5;
const MOVING = ["PENDING", "RUNNING"] as const;

/** What waits for a worker that is not there, and the command that starts one. Nothing as long as nothing waits. */
export function Unserved({ report }: { report: Report }) {
  const { items } = report;
  const first = items[0];
  if (!first) return null;
  const isIdle = first.kind === "no_worker";
  return (
    <section
      aria-label="Work that no worker serves"
      className="flex flex-wrap items-start gap-x-4 gap-y-3 rounded-xl border border-warn/40 bg-warn-soft px-4 py-3"
    >
      <ServerOff size={18} className="mt-0.5 shrink-0 text-warn" aria-hidden />
      <div className="min-w-52 flex-1 space-y-1 text-[13px]">
        <p role="status" className="font-medium text-warn">
          {isIdle
            ? "No worker is alive: these runs wait until there is one."
            : "Some runs wait for a worker that is not there."}
        </p>
        <ul className="space-y-0.5">
          {items.slice(0, SHOWN).map((item) => (
            <li key={`${item.workflow} ${item.digest} ${item.queue}`} className="break-words">
              <Link
                to="/runs"
                search={{ workflow: item.workflow, status: [...MOVING] }}
                className="font-medium text-ink underline decoration-warn/50 hover:decoration-ink"
              >
                {item.workflow}
              </Link>{" "}
              <span className="font-mono text-xs text-ink-2">{item.digest.slice(0, 8)}</span>
              {!isIdle && <span className="text-ink-2"> {item.because}</span>}
            </li>
          ))}
          {(items.length > SHOWN || !report.complete) && (
            <li>
              <Link to="/workers" className="text-ink-2 underline">
                {report.complete ? `and ${items.length - SHOWN} more` : "and more"}
              </Link>
            </li>
          )}
        </ul>
      </div>
      <div className="min-w-0 max-w-full">
        <Command text={commandFor(items)} />
      </div>
    </section>
  );
}

/** A worker that would take what the first item waits for, and everything else that waits for the same. */
function commandFor(items: readonly Item[]): string {
  const alike = items.filter((item) => item.kind === items[0]!.kind);
  const modules = new Set(alike.map((item) => item.module ?? "MODULE").filter(Boolean));
  const queues = new Set(alike.flatMap((item) => item.queue ?? []));
  const words = [...modules].sort().map(quoted);
  if (queues.size) words.push("--queues", quoted([...queues].sort().join(",")));
  return ["stepwell work", ...words].join(" ");
}
