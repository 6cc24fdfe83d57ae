import { useQuery } from "@tanstack/react-query";
import { ShieldAlert, ShieldCheck } from "lucide-react";
import { api, ask } from "@/api/client";
import { Button } from "@/ui/button";
import { Id } from "@/ui/copy";
import { Failure } from "@/ui/states";
import { Status } from "@/ui/status";
import { Time } from "@/ui/time";
import type { NodeDetail, RunDetail } from "./data";

/** How it is known that this node was recorded once: every attempt with the id that fences it, and what it stands on. */
export function ProofTab({ run, node }: { run: RunDetail; node: NodeDetail }) {
  const audit = useQuery({
    queryKey: ["audit", run.id],
    queryFn: () => ask(api.GET("/api/v1/runs/{run_id}/audit", { params: { path: { run_id: run.id } } })),
    enabled: false,
  });
  // Their ancestry hashes, for which the server reads all ancestors: not part of the node.
  const attempts = useQuery({
    queryKey: ["node", run.id, node.id, "attempts"],
    queryFn: () =>
      ask(
        api.GET("/api/v1/runs/{run_id}/nodes/{node}/attempts", {
          params: { path: { run_id: run.id, node: node.id } },
        }),
      ),
  });
  const ancestry = new Map(attempts.data?.map((attempt) => [attempt.id, attempt.ancestry]));
  const sound = audit.data && audit.data.problems.length === 0;
  return (
    <div className="space-y-4 p-4 text-xs">
      <p className="text-[13px] text-ink-2">
        A completion is recorded once. The store takes a result only from the attempt that is running, under
        its own id; a worker that was given up for lost, and comes back, is refused.
      </p>
      <ol className="space-y-2">
        {node.attempt_list.map((attempt) => (
          <li key={attempt.id} className="space-y-1 rounded-md border border-line p-3">
            <div className="flex flex-wrap items-center gap-2">
              <span className="font-medium">Attempt {attempt.number}</span>
              <Status status={attempt.status} />
              <span className="flex-1" />
              <Time at={attempt.ended_at ?? attempt.started_at} />
            </div>
            <dl className="grid grid-cols-[5rem_1fr] gap-y-0.5">
              <dt className="text-ink-3">Id</dt>
              <dd>
                <Id text={attempt.id} />
              </dd>
              <dt className="text-ink-3">Worker</dt>
              <dd className="font-mono break-all">{attempt.worker}</dd>
              {attempt.idempotency_key && attempt.idempotency_key !== node.idempotency_key && (
                <>
                  <dt className="text-ink-3">Its key</dt>
                  <dd>
                    <Id text={attempt.idempotency_key} />
                  </dd>
                </>
              )}
              <dt
                className="text-ink-3"
                title="A hash of the outputs of all nodes above it, as this attempt saw them"
              >
                Ancestry
              </dt>
              <dd>
                {ancestry.get(attempt.id) ? (
                  <Id text={ancestry.get(attempt.id)!} />
                ) : (
                  <span className="text-ink-3">
                    {attempts.isSuccess ? "a parent has not completed" : "…"}
                  </span>
                )}
              </dd>
            </dl>
          </li>
        ))}
      </ol>
      {attempts.error && <Failure error={attempts.error} className="m-0!" />}
      <dl className="grid grid-cols-[8rem_1fr] gap-y-1">
        <dt className="text-ink-3">Key of its effects</dt>
        <dd>
          {node.idempotency_key ? (
            <Id text={node.idempotency_key} />
          ) : (
            <span className="text-ink-3">made by a function of the node, which attempts call</span>
          )}
          <p className="text-ink-3">
            What ctx.idempotency_key gives its body: the same for every attempt until a completed one is
            superseded, so that another service does a thing once.
          </p>
        </dd>
        <dt className="text-ink-3">Graph of the run</dt>
        <dd>
          <Id text={run.digest} />
        </dd>
      </dl>
      <section className="space-y-2 border-t border-line pt-3">
        <Button small disabled={audit.isFetching} onClick={() => void audit.refetch()}>
          {audit.isFetching ? "Checking…" : "Check every invariant of the run"}
        </Button>
        {audit.error && <Failure error={audit.error} className="m-0!" />}
        {audit.data && (
          <div
            data-status={sound ? "COMPLETED" : "FAILED"}
            className="flex items-start gap-2 rounded-md border border-[var(--st)]/40 p-3 text-[13px] text-[var(--st)]"
          >
            {sound ? <ShieldCheck size={16} /> : <ShieldAlert size={16} />}
            <span>
              {sound
                ? `All invariants hold: recomputed from ${audit.data.journal_entries.toLocaleString()} entries of the journal.`
                : audit.data.problems
                    .map((each) => String(typeof each === "string" ? each : JSON.stringify(each)))
                    .join("; ")}
            </span>
          </div>
        )}
      </section>
    </div>
  );
}
