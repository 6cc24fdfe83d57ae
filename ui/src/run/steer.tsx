/** Requests to a run: first what each would touch, then the doing, and the command that does the same. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { api, ask, because, type Schemas } from "@/api/client";
import { PAUSES, VERBS } from "@/api/tables";
import { quoted } from "@/runs/filter";
import { Button } from "@/ui/button";
import { Command } from "@/ui/copy";
import { Dialog, notify } from "@/ui/overlays";
import { Reason, reasonOption } from "@/ui/reason";
import { Failure, Loading } from "@/ui/states";
import { Status } from "@/ui/status";
import type { RunDetail } from "./data";
import { ObjectField, parseObject } from "./input";

export type Steered = Schemas["SteeredRun"];
export type RunVerb = "retry" | "cancel" | "pause" | "resume";

const SHOWN = 200;

/** What a request would touch. It is asked for again whenever the run has changed, and what is shown stays until then. */
export function usePreview(
  run: RunDetail,
  key: readonly unknown[],
  request: () => Promise<Steered>,
  enabled = true,
) {
  const preview = useQuery({
    queryKey: ["preview", run.id, ...key],
    queryFn: request,
    retry: false,
    gcTime: 0,
    enabled,
  });
  const { refetch } = preview;
  useEffect(() => {
    if (enabled) void refetch({ cancelRefetch: false });
  }, [run.seq, enabled, refetch]);
  return preview;
}

/** One request to a run, or to one of its nodes. */
export function steer(
  run_id: string,
  verb: RunVerb | "reattempt",
  options: Record<string, unknown>,
  node?: string,
  reason = "",
) {
  const params = { path: { run_id } };
  const headers = because(reason);
  if (verb === "reattempt") {
    return ask(
      api.POST("/api/v1/runs/{run_id}/nodes/{node}/reattempt", {
        params: { path: { run_id, node: node! } },
        body: options as never,
        headers,
      }),
    );
  }
  return ask(api.POST(`/api/v1/runs/{run_id}/${verb}`, { params, body: options as never, headers }));
}

type Props = {
  run: RunDetail;
  verb: RunVerb | "reattempt";
  node?: string;
  onClose: () => void;
};

export function SteerDialog({ run, verb, node, onClose }: Props) {
  const queries = useQueryClient();
  const [cascade, setCascade] = useState(false);
  const [accept, setAccept] = useState(false);
  const [text, setText] = useState("");
  const goesOn = verb === "retry" || verb === "resume";
  const mayBeRenamed = goesOn && run.reason?.startsWith(PAUSES.rename);
  const needsInput = goesOn && run.reason?.startsWith(PAUSES.input);
  const { value: input, error: wrongInput } = parseObject(text);
  const [reason, setReason] = useState("");
  const options = {
    ...(verb === "reattempt" ? { cascade } : {}),
    ...(mayBeRenamed ? { accept } : {}),
    ...(needsInput && input ? { input } : {}),
  };
  const preview = usePreview(run, [verb, node, options], () =>
    steer(run.id, verb, { ...options, dry_run: true }, node),
  );
  const apply = useMutation({
    mutationFn: () => steer(run.id, verb, options, node, reason),
    onSuccess: () => {
      for (const key of ["run", "graph", "why", "nodes", "attempts", "node"]) {
        void queries.invalidateQueries({ queryKey: [key, run.id] });
      }
      notify(`${verb}: requested`);
      onClose();
    },
  });
  const words = [
    "stepwell",
    verb,
    run.id,
    ...(node ? [node] : []),
    ...(cascade ? ["--cascade"] : []),
    ...(accept ? ["--accept"] : []),
    ...Object.entries(options.input ?? {}).flatMap(([name, value]) => [
      "--input",
      quoted(`${name}=${typeof value === "string" ? value : JSON.stringify(value)}`),
    ]),
    ...reasonOption(reason),
  ];
  return (
    <Dialog
      open
      onClose={onClose}
      title={`${verb[0]!.toUpperCase()}${verb.slice(1)}${node ? ` ${node}` : ""}`}
      description={VERBS[verb].summary}
      footer={
        <>
          <Button onClick={onClose}>Leave it</Button>
          <Button
            look={verb === "cancel" ? "danger" : "primary"}
            disabled={apply.isPending || !preview.data || preview.isError || wrongInput !== null}
            onClick={() => apply.mutate()}
          >
            {apply.isPending ? "Working…" : `${verb[0]!.toUpperCase()}${verb.slice(1)}`}
          </Button>
        </>
      }
    >
      <div className="space-y-3">
        {verb === "reattempt" && (
          <Check checked={cascade} onChange={setCascade}>
            Also run again what completed below it
          </Check>
        )}
        {needsInput && (
          <>
            <p className="text-[13px] break-words text-ink-2">{run.reason}</p>
            <ObjectField
              label="Input that it lacks, as a JSON object"
              hint="What is named here is added to the input of the run, or takes its place."
              value={text}
              onChange={setText}
            />
          </>
        )}
        {mayBeRenamed && (
          <Check checked={accept} onChange={setAccept}>
            No node was renamed: go on with the changed code
          </Check>
        )}
        <Touched steered={preview.data} error={preview.error ?? apply.error} />
        <Reason value={reason} onChange={setReason} />
        <Command text={words.join(" ")} />
      </div>
    </Dialog>
  );
}

export function Check({
  checked,
  onChange,
  children,
}: {
  checked: boolean;
  onChange: (on: boolean) => void;
  children: ReactNode;
}) {
  return (
    <label className="flex items-center gap-2 text-[13px]">
      <input
        type="checkbox"
        checked={checked}
        onChange={(event) => onChange(event.target.checked)}
        className="accent-[var(--accent)]"
      />
      {children}
    </label>
  );
}

/** The nodes that a request would change, and into what. */
export function Touched({ steered, error }: { steered: Steered | undefined; error: unknown }) {
  if (error) return <Failure error={error} className="m-0!" />;
  if (!steered) return <Loading rows={3} label="Asking what it would touch" />;
  const { nodes } = steered;
  if (nodes.length === 0) return <p className="text-[13px] text-ink-2">It touches no node.</p>;
  return (
    <div>
      <p className="mb-1.5 text-[13px]">
        It touches <b>{nodes.length === 1 ? "1 node" : `${nodes.length.toLocaleString()} nodes`}</b>
        {steered.becomes && (
          <>
            , and the run becomes <Status status={steered.becomes} plain />
          </>
        )}
      </p>
      <ul className="max-h-64 divide-y divide-line overflow-auto rounded-md border border-line">
        {nodes.slice(0, SHOWN).map((node) => (
          <li key={node.id} className="flex items-center gap-2 px-3 py-1.5 text-xs">
            <span className="min-w-0 flex-1 truncate font-medium">{node.name}</span>
            <Status status={node.status} plain />
            <span className="text-ink-3">→</span>
            <Status status={node.becomes} plain />
          </li>
        ))}
      </ul>
      {nodes.length > SHOWN && (
        <p className="mt-1 text-xs text-ink-3">and {(nodes.length - SHOWN).toLocaleString()} more</p>
      )}
    </div>
  );
}

/** Deleting is for good: it asks for the words. */
export function DeleteDialog({ run, onClose }: { run: RunDetail; onClose: () => void }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [typed, setTyped] = useState("");
  const [reason, setReason] = useState("");
  const remove = useMutation({
    mutationFn: () =>
      ask(
        api.DELETE("/api/v1/runs/{run_id}", {
          params: { path: { run_id: run.id } },
          headers: because(reason),
        }),
      ),
    onSuccess: () => {
      notify(`${run.workflow} ${run.id} is deleted`);
      void queries.invalidateQueries({ queryKey: ["runs"] });
      void navigate({ to: "/runs" });
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title="Delete this run"
      description="For good: nothing of it can be brought back."
      footer={
        <>
          <Button onClick={onClose}>Leave it</Button>
          <Button
            look="danger"
            disabled={typed !== "delete" || remove.isPending}
            onClick={() => remove.mutate()}
          >
            Delete
          </Button>
        </>
      }
    >
      <p className="mb-3 text-[13px]">
        It deletes <b>{run.nodes_total.toLocaleString()} nodes</b> with their attempts, outputs and logs, and{" "}
        {run.seq.toLocaleString()} entries of the journal.
        {run.forks.length > 0 &&
          ` Its ${run.forks.length === 1 ? "fork stays" : `${run.forks.length} forks stay`}, and can no longer be compared with it.`}
      </p>
      <label className="mb-3 block space-y-1 text-[13px]">
        <span>
          Write <b>delete</b> to do it
        </span>
        <input
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          className="h-8 w-full rounded-md border border-line-strong bg-raised px-2.5"
        />
      </label>
      <p className="mb-2 text-xs text-ink-2">
        In Python: <code className="font-mono break-all">engine.get("{run.id}").delete()</code>
      </p>
      <Reason value={reason} onChange={setReason} />
      {remove.error && <Failure error={remove.error} className="mx-0!" />}
    </Dialog>
  );
}
