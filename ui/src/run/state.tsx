import { useQuery } from "@tanstack/react-query";
import { Braces } from "lucide-react";
import { useEffect, useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { useSession } from "@/shell/session";
import { Button } from "@/ui/button";
import { Command } from "@/ui/copy";
import { Json } from "@/ui/json";
import { Dialog } from "@/ui/overlays";
import { Failure, Loading } from "@/ui/states";
import { Time } from "@/ui/time";
import { ByWorker, needsCode, useByWorker } from "./by-worker";
import type { RunDetail } from "./data";

type Checkpoint = Schemas["CheckpointRecord"];

/** The state of the workflow as it was at an entry of the journal, and what was ready, running or waiting then. */
export function StateButton({ run, at }: { run: RunDetail; at: number }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button small icon={<Braces size={13} />} onClick={() => setOpen(true)}>
        State
      </Button>
      {isOpen && (
        <Dialog open onClose={() => setOpen(false)} wide title={`State at entry ${at.toLocaleString()}`}>
          <div className="space-y-3 pb-2 text-[13px]">
            <StateAt run={run} at={at} />
            <Command text={`stepwell checkpoints ${run.id} ${at}`} />
          </div>
        </Dialog>
      )}
    </>
  );
}

function StateAt({ run, at }: { run: RunDetail; at: number }) {
  const { may } = useSession();
  const path = { run_id: run.id, at: String(at) };
  const { data, error, refetch } = useQuery({
    queryKey: ["checkpoint", run.id, at],
    queryFn: () => ask(api.GET("/api/v1/runs/{run_id}/checkpoints/{at}", { params: { path } })),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (data) return <Shown checkpoint={data} />;
  if (needsCode(error) && may("run")) return <StateByWorker run={run} at={at} />;
  return error ? (
    <Failure error={error} retry={() => void refetch()} className="m-0!" />
  ) : (
    <Loading rows={3} />
  );
}

function StateByWorker({ run, at }: { run: RunDetail; at: number }) {
  const path = { run_id: run.id, at: String(at) };
  const state = useByWorker<Checkpoint>("state", () =>
    ask(api.POST("/api/v1/runs/{run_id}/checkpoints/{at}/state", { params: { path } })),
  );
  const { isIdle, start } = state;
  useEffect(() => {
    if (isIdle) start();
  }, [isIdle, start]);
  return state.result ? (
    <Shown checkpoint={state.result} />
  ) : (
    <ByWorker state={state} label="A worker folds the state" />
  );
}

function Shown({ checkpoint }: { checkpoint: Checkpoint }) {
  return (
    <>
      {checkpoint.state === null ? (
        <p>This workflow declares no state.</p>
      ) : (
        <Json value={checkpoint.state} open={3} />
      )}
      <p className="text-xs text-ink-2">
        <Time at={checkpoint.timestamp} />, {checkpoint.effects.length.toLocaleString()} effects recorded by
        then.{" "}
        {checkpoint.frontier.length === 0
          ? "Nothing was ready, running or waiting."
          : `Ready, running or waiting: ${checkpoint.frontier
              .slice(0, 10)
              .map((each) => each.node)
              .join(", ")}${checkpoint.frontier.length > 10 ? " and more" : ""}.`}
      </p>
    </>
  );
}
