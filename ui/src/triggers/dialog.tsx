import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CirclePause, CirclePlay, History, Zap } from "lucide-react";
import { type ReactNode, useState } from "react";
import { api, ask } from "@/api/client";
import { useRequestKey } from "@/api/request-key";
import { useSession } from "@/shell/session";
import { Button } from "@/ui/button";
import { Json } from "@/ui/json";
import { Dialog, notify } from "@/ui/overlays";
import { Failure, Loading } from "@/ui/states";
import { Status } from "@/ui/status";
import { ago, Lasting, Time } from "@/ui/time";
import { Backfill } from "./backfill";
import { isScheduled, type Trigger, whenOf, workflowOf } from "./when";

const SHOWN = 8;

/** A trigger: when it fires next, what it has started, its definition, and what may be done with it. */
export function TriggerDialog({ trigger, onClose }: { trigger: Trigger; onClose: () => void }) {
  const [backfills, setBackfills] = useState(false);
  const definition = Object.fromEntries(
    Object.entries(trigger).filter(
      ([key]) => !["next", "last", "fired", "left_out", "waiting", "backfills", "error"].includes(key),
    ),
  );
  return (
    <Dialog
      open
      onClose={onClose}
      wide
      title={trigger.name}
      description={trigger.description ?? whenOf(trigger)}
      footer={<Actions trigger={trigger} onBackfill={() => setBackfills(true)} />}
    >
      <div className="space-y-4 pb-2 text-[13px]">
        {trigger.error && (
          <p className="rounded-md border border-danger/30 bg-danger-soft px-3 py-2 break-words text-danger">
            {trigger.error}
          </p>
        )}
        <p>
          Starts{" "}
          <Link
            to="/workflows/$name"
            params={{ name: workflowOf(trigger) }}
            className="text-accent underline"
          >
            {workflowOf(trigger)}
          </Link>
          ; has started {trigger.fired.toLocaleString()}, left out {trigger.left_out.toLocaleString()}
          {trigger.waiting > 0 && `; ${trigger.waiting.toLocaleString()} wait to be started`}.
        </p>
        {trigger.backfills.map((each) => (
          <p key={each.after} className="text-ink-2">
            A backfill is starting the runs of the times after <Time at={each.after} full /> and until{" "}
            <Time at={each.until} full />.
          </p>
        ))}
        {backfills && <Backfill trigger={trigger} onDone={() => setBackfills(false)} />}
        {trigger.next.length > 0 && (
          <Section title="Next">
            <ul className="grid gap-x-8 gap-y-0.5 sm:grid-cols-2">
              {trigger.next.map((time) => (
                <li key={time} className="flex justify-between gap-3">
                  <Time at={time} full />
                  <span className="text-ink-3">{ago(time)}</span>
                </li>
              ))}
            </ul>
          </Section>
        )}
        <Section title="Runs it started">
          <Fires name={trigger.name} />
        </Section>
        <Section title="Definition">
          <Json value={definition} open={1} />
        </Section>
      </div>
    </Dialog>
  );
}

const Section = ({ title, children }: { title: string; children: ReactNode }) => (
  <section>
    <h3 className="mb-1 text-2xs font-medium tracking-wide text-ink-3 uppercase">{title}</h3>
    {children}
  </section>
);

/** The latest fires: every run has its trigger as a tag. */
function Fires({ name }: { name: string }) {
  const tag = [`trigger=${name}`];
  const { data, error, refetch } = useQuery({
    queryKey: ["runs", "fires", name],
    queryFn: () => ask(api.GET("/api/v1/runs", { params: { query: { tag, limit: SHOWN } } })),
    refetchInterval: 5_000,
  });
  if (!data) {
    return error ? (
      <Failure error={error} retry={() => void refetch()} className="m-0!" />
    ) : (
      <Loading rows={2} />
    );
  }
  if (data.items.length === 0) return <p className="text-ink-3">None yet, or none that is still kept.</p>;
  return (
    <>
      <ul className="divide-y divide-line rounded-md border border-line">
        {data.items.map((run) => (
          <li key={run.id}>
            <Link
              to="/runs/$runId"
              params={{ runId: run.id }}
              className="flex items-center gap-3 px-3 py-1.5 hover:bg-hover"
            >
              <Status status={run.status} />
              <span className="min-w-0 flex-1 truncate font-mono text-xs text-ink-2">{run.id}</span>
              <span className="hidden sm:inline">
                <Lasting from={run.started_at} to={run.ended_at} />
              </span>
              <Time at={run.created_at} />
            </Link>
          </li>
        ))}
      </ul>
      {data.next && (
        <Link to="/runs" search={{ tag }} className="mt-1 inline-block text-xs text-accent hover:underline">
          All of them
        </Link>
      )}
    </>
  );
}

function Actions({ trigger, onBackfill }: { trigger: Trigger; onBackfill: () => void }) {
  const { may } = useSession();
  const queries = useQueryClient();
  const { name } = trigger;
  const key = useRequestKey(name);
  const act = useMutation({
    mutationFn: async (verb: "pause" | "resume" | "fire") => {
      const header = verb === "fire" ? key.header() : undefined;
      await ask<unknown>(api.POST(`/api/v1/triggers/{name}/${verb}`, { params: { path: { name }, header } }));
      return verb;
    },
    onSuccess: (verb) => {
      if (verb === "fire") key.done();
      notify({ pause: `${name} is paused`, resume: `${name} goes on`, fire: `${name} was fired` }[verb]);
      void queries.invalidateQueries({ queryKey: ["triggers"] });
      void queries.invalidateQueries({ queryKey: ["runs"] });
    },
    onError: (error) => {
      key.failed(error);
      notify(error.message, { bad: true });
    },
  });
  if (!may("run")) return null;
  return (
    <>
      {isScheduled(trigger) && (
        <Button icon={<History size={14} />} onClick={onBackfill}>
          Backfill…
        </Button>
      )}
      <Button icon={<Zap size={14} />} disabled={act.isPending} onClick={() => act.mutate("fire")}>
        Fire now
      </Button>
      {trigger.paused ? (
        <Button
          look="primary"
          icon={<CirclePlay size={14} />}
          disabled={act.isPending}
          onClick={() => act.mutate("resume")}
        >
          Go on
        </Button>
      ) : (
        <Button icon={<CirclePause size={14} />} disabled={act.isPending} onClick={() => act.mutate("pause")}>
          Pause
        </Button>
      )}
    </>
  );
}
