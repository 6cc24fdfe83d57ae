import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { CirclePause, CirclePlay, Zap } from "lucide-react";
import { api, ask, type Schemas } from "@/api/client";
import { useSession } from "@/shell/session";
import { Button } from "@/ui/button";
import { Json } from "@/ui/json";
import { Dialog, notify } from "@/ui/overlays";
import { PageHead } from "@/ui/page";
import { type Column, Rows } from "@/ui/rows";
import { Empty, Failure, Loading } from "@/ui/states";
import { ago, Time } from "@/ui/time";

type Trigger = Schemas["TriggerRecord"];

/** What makes a trigger fire, in a few words. */
export function whenOf(trigger: Trigger): string {
  switch (trigger.kind) {
    case "cron":
      return `${trigger.cron}${trigger.timezone ? ` (${trigger.timezone})` : ""}`;
    case "every":
      return `every ${typeof trigger.every === "number" ? `${trigger.every} s` : trigger.every}`;
    case "webhook":
      return `POST /hooks/${trigger.name}`;
    case "run_finished":
      return `a run of ${String(trigger.run_finished?.workflow ?? "a workflow")} ends`;
    case "state":
      return `a state of ${String(trigger.state?.pipeline ?? "a pipeline")}`;
  }
}

const COLUMNS: Column<Trigger>[] = [
  {
    name: "Trigger",
    width: "minmax(0,1.3fr)",
    cell: (each) => <span className="font-medium">{each.name}</span>,
  },
  {
    name: "Fires on",
    width: "minmax(0,1.5fr)",
    cell: (each) => <code className="font-mono text-xs">{whenOf(each)}</code>,
  },
  {
    name: "Starts",
    width: "minmax(0,1fr)",
    wideOnly: true,
    cell: (each) => (
      <Link to="/workflows/$name" params={{ name: each.workflow }} className="hover:underline">
        {each.workflow}
      </Link>
    ),
  },
  {
    name: "Next",
    width: "7rem",
    cell: (each) =>
      each.paused ? (
        <span className="text-warn">paused</span>
      ) : each.next[0] ? (
        <span title={each.next.join("\n")}>{ago(each.next[0])}</span>
      ) : (
        <span className="text-ink-3">when it happens</span>
      ),
  },
  { name: "Last", width: "6rem", wideOnly: true, cell: (each) => <Time at={each.last?.time} /> },
  { name: "Fired", width: "4rem", align: "right", cell: (each) => each.fired.toLocaleString() },
  {
    name: "",
    width: "5rem",
    wideOnly: true,
    cell: (each) =>
      each.error ? <span className="text-danger">failed</span> : each.waiting ? `${each.waiting} wait` : "",
  },
];

export function TriggersPage() {
  const { name } = useSearch({ from: "/triggers" });
  const navigate = useNavigate({ from: "/triggers" });
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ["triggers"],
    queryFn: () => ask(api.GET("/api/v1/triggers", { params: { query: { limit: 500 } } })),
    refetchInterval: 5_000,
  });
  const chosen = data?.items.find((each) => each.name === name);
  const broken = data?.items.filter((each) => each.error).length ?? 0;
  return (
    <>
      <PageHead title="Triggers" note={broken ? `${broken} could not start a run` : undefined} />
      {isPending ? (
        <Loading />
      ) : error ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : data.items.length === 0 ? (
        <Empty title="No triggers" icon={<Zap size={26} strokeWidth={1.5} />}>
          Schedules, webhooks, ended runs and states start runs. Declare them with a workflow, or{" "}
          <code className="font-mono text-xs">stepwell trigger add</code>.
        </Empty>
      ) : (
        <Rows
          rows={data.items}
          columns={COLUMNS}
          keyOf={(each) => each.name}
          label="Triggers"
          onOpen={(each) => void navigate({ search: { name: each.name } })}
        />
      )}
      {chosen && <TriggerDialog trigger={chosen} onClose={() => void navigate({ search: {} })} />}
    </>
  );
}

function TriggerDialog({ trigger, onClose }: { trigger: Trigger; onClose: () => void }) {
  const { may } = useSession();
  const queries = useQueryClient();
  const { name } = trigger;
  const act = useMutation({
    mutationFn: async (verb: "pause" | "resume" | "fire") => {
      await ask<unknown>(api.POST(`/api/v1/triggers/{name}/${verb}`, { params: { path: { name } } }));
      return verb;
    },
    onSuccess: (verb) => {
      notify({ pause: `${name} is paused`, resume: `${name} goes on`, fire: `${name} was fired` }[verb]);
      void queries.invalidateQueries({ queryKey: ["triggers"] });
    },
    onError: (error) => notify(error.message, { bad: true }),
  });
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
      title={name}
      description={trigger.description ?? whenOf(trigger)}
      footer={
        may("run") && (
          <>
            <Button icon={<Zap size={14} />} disabled={act.isPending} onClick={() => act.mutate("fire")}>
              Fire now
            </Button>
            {trigger.paused ? (
              <Button look="primary" icon={<CirclePlay size={14} />} onClick={() => act.mutate("resume")}>
                Go on
              </Button>
            ) : (
              <Button icon={<CirclePause size={14} />} onClick={() => act.mutate("pause")}>
                Pause
              </Button>
            )}
          </>
        )
      }
    >
      <div className="space-y-3 pb-2 text-[13px]">
        {trigger.error && (
          <p className="rounded-md border border-danger/30 bg-danger-soft px-3 py-2 break-words text-danger">
            {trigger.error}
          </p>
        )}
        <p>
          Starts{" "}
          <Link
            to="/workflows/$name"
            params={{ name: trigger.workflow }}
            className="text-accent hover:underline"
          >
            {trigger.workflow}
          </Link>
          ; has started {trigger.fired.toLocaleString()}, left out {trigger.left_out.toLocaleString()}
          {trigger.waiting > 0 && `; ${trigger.waiting} wait for the run before`}.
          {trigger.last?.run && (
            <>
              {" "}
              The latest:{" "}
              <Link
                to="/runs/$runId"
                params={{ runId: trigger.last.run }}
                className="text-accent hover:underline"
              >
                {trigger.last.run}
              </Link>
            </>
          )}
        </p>
        {trigger.next.length > 0 && (
          <section>
            <h3 className="mb-1 text-2xs font-medium tracking-wide text-ink-3 uppercase">Next</h3>
            <ul className="grid gap-x-6 sm:grid-cols-2">
              {trigger.next.map((time) => (
                <li key={time} className="flex justify-between">
                  <Time at={time} full />
                  <span className="text-ink-3">{ago(time)}</span>
                </li>
              ))}
            </ul>
          </section>
        )}
        <Json value={definition} open={1} />
      </div>
    </Dialog>
  );
}
