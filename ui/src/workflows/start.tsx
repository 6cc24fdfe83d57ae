import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { runQuery, workersQuery } from "@/api/queries";
import { useRequestKey } from "@/api/request-key";
import { quoted } from "@/runs/filter";
import { useSession } from "@/shell/session";
import { Button } from "@/ui/button";
import { Command } from "@/ui/copy";
import { Field, Segments, TextField } from "@/ui/fields";
import { Empty, Failure, Loading } from "@/ui/states";

const InputForm = lazy(() => import("./form"));

type Workflow = Schemas["WorkflowDetail"];

/** Start a run: a form made of the schema of its input, or the input as JSON. */
export function Start({ workflow, from }: { workflow: Workflow; from: string | undefined }) {
  const { may } = useSession();
  const navigate = useNavigate();
  const before = useQuery({ ...runQuery(from ?? ""), enabled: from !== undefined });
  const [mode, setMode] = useState<"form" | "json">(workflow.input ? "form" : "json");
  const [value, setValue] = useState<unknown>({});
  const [text, setText] = useState("{}");
  const [tags, setTags] = useState("");
  const [broken, setBroken] = useState<string | null>(null);
  // Every form has a key: pressing twice, or again after a lost answer, starts one run.
  const key = useRequestKey();
  const given = before.data?.input;
  useEffect(() => {
    if (given === undefined) return;
    setValue(given);
    setText(JSON.stringify(given, null, 2));
  }, [given]);
  const start = useMutation({
    mutationFn: (input: unknown) =>
      ask(
        api.POST("/api/v1/workflows/{name}/runs", {
          params: { path: { name: workflow.name }, header: key.header() },
          body: { input: input as never, tags: readTags(tags) },
        }),
      ),
    onSuccess: (run) => void navigate({ to: "/runs/$runId", params: { runId: run.id }, search: {} }),
    onError: key.failed,
  });
  const workers = useQuery(workersQuery);
  const served =
    workflow.kind === "document" ||
    !workers.data ||
    workers.data.some(
      (worker) => worker.alive && worker.serves.some((each) => each.workflow === workflow.name),
    );
  if (!may("run")) {
    return <Empty title="You may look, not start">A token of the scope “run” starts runs.</Empty>;
  }
  if (from !== undefined && before.isPending) return <Loading rows={4} />;
  const json = mode === "json" ? text : JSON.stringify(value ?? {});
  const submitText = () => {
    try {
      start.mutate(JSON.parse(text));
    } catch (error) {
      setText(text);
      start.reset();
      setBroken(String(error));
      return;
    }
    setBroken(null);
  };
  const tagsField = (
    <Field label="Tags" hint="Optional. As in customer=7, team=red: runs are found by them.">
      <TextField value={tags} onChange={(event) => setTags(event.target.value)} />
    </Field>
  );
  return (
    <div className="max-w-2xl space-y-4 p-4">
      {!served && (
        <p
          role="status"
          className="rounded-lg border border-warn/30 bg-warn-soft px-3 py-2 text-[13px] text-warn"
        >
          No worker serves this workflow now: a run that starts waits until one does.
        </p>
      )}
      {workflow.input && (
        <Segments
          label="Input as"
          value={mode}
          onChange={(next) => {
            if (next === "json") setText(JSON.stringify(value ?? {}, null, 2));
            else {
              try {
                setValue(JSON.parse(text));
              } catch {
                return;
              }
            }
            setMode(next);
          }}
          options={[
            { value: "form", label: "Form" },
            { value: "json", label: "JSON" },
          ]}
        />
      )}
      {mode === "form" && workflow.input ? (
        <Suspense fallback={<Loading rows={4} />}>
          <InputForm
            schema={workflow.input}
            value={value}
            onChange={setValue}
            onSubmit={() => start.mutate(value ?? {})}
            busy={start.isPending}
          >
            {tagsField}
          </InputForm>
        </Suspense>
      ) : (
        <>
          <Field label="Input, as JSON">
            <textarea
              value={text}
              onChange={(event) => setText(event.target.value)}
              rows={8}
              spellCheck={false}
              className="w-full rounded-md border border-line-strong bg-raised p-2 font-mono text-xs"
            />
          </Field>
          {tagsField}
          <Button look="primary" disabled={start.isPending} onClick={submitText}>
            {start.isPending ? "Starting…" : "Start"}
          </Button>
        </>
      )}
      {broken && <p className="text-xs text-danger">{broken}</p>}
      {start.error && <Failure error={start.error} className="mx-0!" />}
      <Command
        text={`stepwell run ${quoted(workflow.target ?? workflow.name)} --input ${quoted(compact(json))}`}
      />
    </div>
  );
}

/** The input as the command line takes it: short where it is JSON, and otherwise as it was written. */
function compact(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
}

export function readTags(text: string): Record<string, string> {
  return Object.fromEntries(
    text
      .split(/[,\n]/)
      .map((each) => each.trim())
      .filter((each) => /^[^=]+=/.test(each))
      .map((each) => [each.slice(0, each.indexOf("=")).trim(), each.slice(each.indexOf("=") + 1).trim()]),
  );
}
