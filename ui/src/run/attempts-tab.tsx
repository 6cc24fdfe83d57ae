import { useQuery } from "@tanstack/react-query";
import clsx from "clsx";
import { workersQuery } from "@/api/queries";
import { Json } from "@/ui/json";
import { Empty } from "@/ui/states";
import { Status } from "@/ui/status";
import { Lasting, Time } from "@/ui/time";
import type { NodeDetail } from "./data";
import { useRunSearch } from "./search";

export function AttemptsTab({ node }: { node: NodeDetail }) {
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
            <Status
              status={attempt.status === "RELEASED" && node.status === "SKIPPED" ? "SKIPPED" : attempt.status}
            />
            <span className="flex-1" />
            <span className="text-xs text-ink-2">
              <Lasting from={attempt.started_at} to={attempt.ended_at} /> · <Time at={attempt.started_at} />
            </span>
          </button>
          {attempt.number === chosen && <Details attempt={attempt} />}
        </li>
      ))}
    </ol>
  );
}

function Details({ attempt }: { attempt: NodeDetail["attempt_list"][number] }) {
  return (
    <div className="mt-2 space-y-2">
      <p className="text-xs text-ink-2">
        on <span className="font-mono break-all">{attempt.worker}</span>
        {attempt.status === "RUNNING" && <Lease worker={attempt.worker} />}
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
  );
}

/** Until when the worker holds what it runs: after that, another one may take it. */
function Lease({ worker }: { worker: string }) {
  const { data } = useQuery(workersQuery);
  const holder = data?.find((each) => each.id === worker);
  if (!data) return null;
  if (!holder) return <span className="text-warn">, which is not among the workers</span>;
  return (
    <span className={holder.alive ? undefined : "text-warn"}>
      {holder.host && `, ${holder.host} process ${holder.pid}`},{" "}
      {holder.lease_seconds_left < 0 ? "its lease has run out" : "its lease runs out"}{" "}
      <Time at={holder.lease_until} /> unless it is renewed
    </span>
  );
}
