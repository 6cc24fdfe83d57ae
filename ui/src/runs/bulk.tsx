import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Layers } from "lucide-react";
import { useState } from "react";
import { api, ask, because, type Schemas } from "@/api/client";
import { VERBS } from "@/api/tables";
import { useSession } from "@/shell/session";
import { Button } from "@/ui/button";
import { Dialog, Menu } from "@/ui/overlays";
import { Reason } from "@/ui/reason";
import { Failure } from "@/ui/states";
import { Status } from "@/ui/status";
import { type Filter, whichRuns } from "./filter";

type BulkVerb = "retry" | "cancel" | "pause" | "resume";
type Outcome = Schemas["BulkRecord"];

const BULK: BulkVerb[] = ["retry", "cancel", "pause", "resume"];

/** The same request to every run that the list shows: first what it would do, then the doing, then what became of it. */
export function Bulk({ filter }: { filter: Filter }) {
  const { may } = useSession();
  const [verb, setVerb] = useState<BulkVerb | null>(null);
  if (!may("run")) return null;
  return (
    <>
      <Menu
        trigger={
          <Button small icon={<Layers size={13} />}>
            All of these
          </Button>
        }
        items={BULK.map((each) => ({
          label: `${each[0]!.toUpperCase()}${each.slice(1)} what is listed…`,
          danger: each === "cancel",
          onSelect: () => setVerb(each),
        }))}
      />
      {verb && <BulkDialog verb={verb} filter={filter} onClose={() => setVerb(null)} />}
    </>
  );
}

function BulkDialog({ verb, filter, onClose }: { verb: BulkVerb; filter: Filter; onClose: () => void }) {
  const queries = useQueryClient();
  const which = whichRuns(filter);
  const [reason, setReason] = useState("");
  const request = (dry_run: boolean) =>
    ask(
      api.POST("/api/v1/bulk/{verb}", {
        params: { path: { verb } },
        body: { filter: which, dry_run, limit: 1_000 } as never,
        headers: because(reason),
      }),
    ) as Promise<Outcome>;
  const preview = useMutation({ mutationFn: () => request(true) });
  const apply = useMutation({
    mutationFn: () => request(false),
    onSuccess: () => void queries.invalidateQueries({ queryKey: ["runs"] }),
  });
  if (preview.isIdle) preview.mutate();
  const shown = apply.data ?? preview.data;
  const runs = (count: number) => `${count.toLocaleString()} ${count === 1 ? "run" : "runs"}`;
  return (
    <Dialog
      open
      onClose={onClose}
      wide
      title={
        apply.data ? `Done: ${verb}` : `${verb[0]!.toUpperCase()}${verb.slice(1)} every run that is listed`
      }
      description={VERBS[verb].summary}
      footer={
        <>
          <Button onClick={onClose}>{apply.data ? "Close" : "Leave it"}</Button>
          {!apply.data && (
            <Button
              look={verb === "cancel" ? "danger" : "primary"}
              disabled={!preview.data?.done || apply.isPending}
              onClick={() => apply.mutate()}
            >
              {apply.isPending ? "Working…" : `${verb} ${preview.data ? runs(preview.data.done) : ""}`}
            </Button>
          )}
        </>
      }
    >
      <p className="mb-2 text-xs text-ink-2">
        Filter:{" "}
        <code className="font-mono">{Object.keys(which).length ? JSON.stringify(which) : "all runs"}</code>
      </p>
      {!apply.data && (
        <div className="mb-3">
          <Reason value={reason} onChange={setReason} />
        </div>
      )}
      {(preview.error ?? apply.error) && <Failure error={preview.error ?? apply.error} className="m-0!" />}
      {shown && (
        <>
          <p className="mb-2 text-[13px]">
            {apply.data ? "It was done to " : "It would be done to "}
            <b>{runs(shown.done)}</b>
            {shown.refused > 0 && `; ${runs(shown.refused)} refused`}
            {shown.more && "; more match than fit into one request: do it again for the rest"}.
          </p>
          <ul className="divide-y divide-line rounded-md border border-line">
            {[...shown.runs]
              .sort((a, b) => Number(a.done) - Number(b.done))
              .slice(0, 200)
              .map((each) => (
                <li key={each.run} className="flex items-center gap-3 px-3 py-1.5 text-xs">
                  <Status status={each.status} />
                  <span className="truncate font-mono">{each.run}</span>
                  <span className="flex-1" />
                  <span className={each.done ? "text-ink-3" : "text-danger"}>{each.detail ?? "done"}</span>
                </li>
              ))}
          </ul>
        </>
      )}
    </Dialog>
  );
}
