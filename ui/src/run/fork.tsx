import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, ask, because } from "@/api/client";
import { useRequestKey } from "@/api/request-key";
import { Button } from "@/ui/button";
import { Command } from "@/ui/copy";
import { Dialog, notify } from "@/ui/overlays";
import { Reason, reasonOption } from "@/ui/reason";
import { Failure } from "@/ui/states";
import type { RunDetail } from "./data";
import { ObjectField, parseObject } from "./input";
import { type Steered, Touched, usePreview } from "./steer";

type Props = { run: RunDetail; at: number | string | null; onClose: () => void };

/** A new run that begins with what this one has done: the finished work is not done again. */
export function Fork({ run, at, onClose }: Props) {
  const navigate = useNavigate();
  const [input, setInput] = useState("");
  const [reason, setReason] = useState("");
  const parsed = parseObject(input);
  const key = useRequestKey(JSON.stringify([run.id, at, parsed.value]));
  const request = (dry_run: boolean) =>
    ask(
      api.POST("/api/v1/runs/{run_id}/fork", {
        params: { path: { run_id: run.id }, header: dry_run ? undefined : key.header() },
        body: { at, dry_run, input: parsed.value ?? null },
        headers: because(reason),
      }),
    );
  const preview = usePreview(
    run,
    ["fork", at, parsed.value],
    () => request(true) as unknown as Promise<Steered>,
    parsed.error === null,
  );
  const apply = useMutation({
    mutationFn: () => request(false),
    onError: key.failed,
    onSuccess: (fork) => {
      notify("The fork has started");
      onClose();
      void navigate({ to: "/runs/$runId", params: { runId: (fork as { id: string }).id }, search: {} });
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title={at === null ? "Fork this run" : `Fork this run at ${at}`}
      description="A new run that begins with what this one has done. This run stays as it is."
      footer={
        <>
          <Button onClick={onClose}>Leave it</Button>
          <Button
            look="primary"
            disabled={apply.isPending || !preview.data || preview.isError || parsed.error !== null}
            onClick={() => apply.mutate()}
          >
            Fork
          </Button>
        </>
      }
    >
      <div className="space-y-3">
        <ObjectField
          label="Input that changes, as a JSON object"
          hint="Only for what is not shared with this run. Empty: the same input."
          value={input}
          onChange={setInput}
        />
        <Touched steered={preview.data} error={preview.error ?? null} />
        <Reason value={reason} onChange={setReason} />
        {apply.error && <Failure error={apply.error} className="m-0!" />}
        <Command
          text={[
            "stepwell fork",
            run.id,
            ...(at === null ? [] : [`--at ${at}`]),
            ...reasonOption(reason),
          ].join(" ")}
        />
      </div>
    </Dialog>
  );
}
