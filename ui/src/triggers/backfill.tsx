import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, ask } from "@/api/client";
import { fromLocal, toLocal } from "@/runs/filter";
import { Button } from "@/ui/button";
import { Command } from "@/ui/copy";
import { Field, TextField } from "@/ui/fields";
import { notify } from "@/ui/overlays";
import { Failure } from "@/ui/states";
import { exactTime } from "@/ui/time";
import type { Trigger } from "./when";

const DAY = 86_400_000;
const SHOWN = 6;

/** Start the runs of times that have passed and have none: first which ones, then the doing. */
export function Backfill({ trigger: { name }, onDone }: { trigger: Trigger; onDone: () => void }) {
  const queries = useQueryClient();
  const [start, setStart] = useState(() => toLocal(new Date(Date.now() - 7 * DAY).toISOString()));
  const [end, setEnd] = useState(() => toLocal(new Date().toISOString()));
  const range = { start: fromLocal(start) ?? "", end: fromLocal(end) ?? "" };
  const request = (dry_run: boolean) =>
    ask(
      api.POST("/api/v1/triggers/{name}/backfill", {
        params: { path: { name } },
        body: { ...range, dry_run },
      }),
    );
  const preview = useMutation({ mutationFn: () => request(true) });
  const apply = useMutation({
    mutationFn: () => request(false),
    onSuccess: ({ times }) => {
      notify(`${name} starts the runs of ${times.length.toLocaleString()} times`);
      void queries.invalidateQueries({ queryKey: ["triggers"] });
      onDone();
    },
  });
  const error = preview.error ?? apply.error;
  const times = preview.data?.times;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (times) apply.mutate();
    else preview.mutate();
  };
  const change = (set: (text: string) => void) => (event: { target: { value: string } }) => {
    set(event.target.value);
    preview.reset();
  };
  return (
    <form
      onSubmit={submit}
      aria-label="Backfill"
      className="space-y-3 rounded-lg border border-line bg-canvas p-3"
    >
      <div className="grid gap-3 sm:grid-cols-2">
        <Field label="From">
          <TextField type="datetime-local" required value={start} onChange={change(setStart)} />
        </Field>
        <Field label="Until, without it">
          <TextField type="datetime-local" required value={end} onChange={change(setEnd)} />
        </Field>
      </div>
      {error && <Failure error={error} className="m-0!" />}
      {times && (
        <p>
          {times.length === 0
            ? "Every time in this range has its run already."
            : `${times.length.toLocaleString()} ${times.length === 1 ? "time has" : "times have"} no run: ${times
                .slice(0, SHOWN)
                .map(exactTime)
                .join("; ")}${times.length > SHOWN ? "; …" : ""}`}
        </p>
      )}
      <div className="flex flex-wrap items-center gap-2">
        <Button
          type="submit"
          look="primary"
          disabled={preview.isPending || apply.isPending || times?.length === 0}
        >
          {times ? `Start ${times.length.toLocaleString()} runs` : "Which times?"}
        </Button>
        <Button look="ghost" onClick={onDone}>
          Leave it
        </Button>
      </div>
      <Command text={`stepwell trigger backfill ${name} ${range.start} ${range.end}`} />
    </form>
  );
}
