import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import clsx from "clsx";
import { Server } from "lucide-react";
import type { Schemas } from "@/api/client";
import { unservedQuery, workersQuery } from "@/api/queries";
import { Command } from "@/ui/copy";
import { Card, PageHead } from "@/ui/page";
import { Empty, Failure, Loading } from "@/ui/states";
import { duration, Time } from "@/ui/time";
import { Unserved } from "./unserved";

type Worker = Schemas["WorkerRecord"];

/** Who works, what each has the code of, and what it is running: why something waits is often here. */
export function WorkersPage() {
  const { data, error, isPending, refetch } = useQuery({ ...workersQuery, refetchInterval: 3_000 });
  const unserved = useQuery(unservedQuery);
  if (isPending) return <Loading />;
  if (!data) return <Failure error={error} retry={() => void refetch()} />;
  const workers = data;
  const alive = workers.filter((each) => each.alive);
  return (
    <>
      <PageHead title="Workers" note={`${alive.length} alive`} />
      {error && <Failure error={error} retry={() => void refetch()} />}
      {workers.length === 0 ? (
        <>
          {unserved.data && (
            <div className="p-4">
              <Unserved report={unserved.data} />
            </div>
          )}
          <Empty title="No workers" icon={<Server size={26} strokeWidth={1.5} />}>
            <p className="mb-3">Nothing runs until there is one, here or on another machine.</p>
            <Command text="stepwell work MODULE" />
          </Empty>
        </>
      ) : (
        <div className="space-y-4 p-4">
          {unserved.error && <Failure error={unserved.error} className="m-0!" />}
          {unserved.data && <Unserved report={unserved.data} />}
          <Served workers={alive} />
          <div className="grid gap-4 xl:grid-cols-2">
            {[...workers]
              .sort((a, b) => Number(b.alive) - Number(a.alive))
              .map((each) => (
                <WorkerCard key={each.id} worker={each} />
              ))}
          </div>
        </div>
      )}
    </>
  );
}

/** Which versions of which workflows are served where, and who takes nodes from which queues. */
function Served({ workers }: { workers: Worker[] }) {
  const byWorkflow = new Map<string, Map<string, Worker[]>>();
  for (const worker of workers) {
    for (const { workflow, digest } of worker.serves) {
      const digests = byWorkflow.get(workflow) ?? new Map<string, Worker[]>();
      digests.set(digest, [...(digests.get(digest) ?? []), worker]);
      byWorkflow.set(workflow, digests);
    }
  }
  return (
    <Card title="What is served" aside={<Queues workers={workers} />}>
      {byWorkflow.size === 0 ? (
        <p className="p-4 text-[13px] text-ink-2">
          No worker has the code of a class. Documents and registered jobs need none.
        </p>
      ) : (
        <ul className="divide-y divide-line">
          {[...byWorkflow].sort().map(([workflow, digests]) => (
            <li
              key={workflow}
              className="grid gap-x-4 gap-y-1 px-4 py-2 text-[13px] sm:grid-cols-[10rem_minmax(0,1fr)]"
            >
              <Link
                to="/workflows/$name"
                params={{ name: workflow }}
                className="truncate font-medium hover:underline"
              >
                {workflow}
              </Link>
              <div className="min-w-0 space-y-0.5">
                {[...digests].map(([digest, own]) => (
                  <p key={digest} className="flex gap-2 text-xs">
                    <span className="font-mono text-ink-2">{digest.slice(0, 12)}</span>
                    <span className="min-w-0 truncate text-ink-3" title={own.map(placeOf).join("\n")}>
                      {own.length} × {own.slice(0, 3).map(placeOf).join(", ")}
                      {own.length > 3 && ` and ${(own.length - 3).toLocaleString()} more`}
                    </span>
                  </p>
                ))}
                {digests.size > 1 && (
                  <p className="text-xs text-warn">Workers have different versions of it.</p>
                )}
              </div>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

const placeOf = (worker: Worker) => `${worker.host ?? "unknown machine"} (${worker.pid ?? "?"})`;

function Queues({ workers }: { workers: Worker[] }) {
  const counts = new Map<string, number>();
  for (const name of workers.flatMap((worker) => worker.queues ?? ["all"]))
    counts.set(name, (counts.get(name) ?? 0) + 1);
  return (
    <span className="text-xs text-ink-3">
      queues: {[...counts].map(([name, count]) => `${name} × ${count}`).join(", ") || "none"}
    </span>
  );
}

function WorkerCard({ worker }: { worker: Worker }) {
  const left = worker.lease_seconds_left;
  return (
    <Card
      className={clsx(!worker.alive && "opacity-70")}
      title={
        <span className="flex items-center gap-2">
          <span
            data-status={worker.alive ? "COMPLETED" : "LOST"}
            className="size-2 rounded-full bg-[var(--st)]"
            aria-hidden="true"
          />
          {worker.host ?? "unknown machine"}
          {worker.pid !== null && <span className="font-normal text-ink-3">process {worker.pid}</span>}
        </span>
      }
      aside={
        <span className="text-xs text-ink-3">
          {worker.alive ? (worker.idle ? "gets no hints" : "alive") : "lost"}
        </span>
      }
    >
      <dl className="grid grid-cols-[6rem_1fr] gap-y-1 px-4 py-3 text-xs">
        <dt className="text-ink-3">Id</dt>
        <dd className="font-mono break-all">{worker.id}</dd>
        {worker.celery && (
          <>
            <dt className="text-ink-3">Celery</dt>
            <dd className="font-mono">{worker.celery}</dd>
          </>
        )}
        <dt className="text-ink-3">Lease</dt>
        <dd>
          {left > 0 ? `${duration(left)} left` : `ran out ${duration(-left)} ago`}, renewed{" "}
          <Time at={worker.renewed_at} />
        </dd>
        <dt className="text-ink-3">Queues</dt>
        <dd>{worker.queues?.join(", ") ?? "all"}</dd>
        {worker.lacks.length > 0 && (
          <>
            <dt className="text-warn">Lacks</dt>
            <dd className="text-warn">
              {worker.lacks.map((each) => (
                <p key={`${each.workflow} ${each.what}`}>
                  {each.workflow}: {each.what}
                </p>
              ))}
            </dd>
          </>
        )}
      </dl>
      {worker.holds.length > 0 && (
        <ul className="divide-y divide-line border-t border-line">
          {worker.holds.slice(0, 12).map((hold) => (
            <li key={`${hold.run} ${hold.node}`}>
              <Link
                to="/runs/$runId"
                params={{ runId: hold.run }}
                search={{ node: hold.node }}
                className="flex items-center gap-3 px-4 py-1.5 text-xs hover:bg-hover"
              >
                <span className="font-medium">{hold.node}</span>
                <span className="min-w-0 flex-1 truncate font-mono text-ink-3">{hold.run}</span>
                <span className="tabular">{duration(hold.seconds)}</span>
              </Link>
            </li>
          ))}
          {worker.holds.length > 12 && (
            <li className="px-4 py-1.5 text-xs text-ink-3">and {worker.holds.length - 12} more</li>
          )}
        </ul>
      )}
    </Card>
  );
}
