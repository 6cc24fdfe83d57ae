import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Layers } from "lucide-react";
import { useState } from "react";
import { api, ask, because, type Schemas } from "@/api/client";
import { VERBS } from "@/api/tables";
import { useSession } from "@/shell/session";
import { Button } from "@/ui/button";
import { Dialog, Menu } from "@/ui/overlays";
import { Reason } from "@/ui/reason";
import { Failure, Loading } from "@/ui/states";
import { Status } from "@/ui/status";
import { exactTime } from "@/ui/time";
import { type Filter, inWords, whichRuns } from "./filter";

type BulkVerb = "retry" | "cancel" | "pause" | "resume";
type Outcome = Schemas["BulkRecord"];

const BULK: BulkVerb[] = ["retry", "cancel", "pause", "resume"];
/** Runs that one request takes. */
const MOST = 1_000;
/** Runs that are listed one by one; those that something is to be said of come first. */
const SHOWN = 200;

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
const count = (number: number, noun: string) =>
  `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;

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
          label: `${capital(each)} what is listed…`,
          danger: each === "cancel",
          onSelect: () => setVerb(each),
        }))}
      />
      {verb && <BulkDialog verb={verb} filter={filter} onClose={() => setVerb(null)} />}
    </>
  );
}

type DialogProps = { verb: BulkVerb; filter: Filter; onClose: () => void };

function BulkDialog({ verb, filter, onClose }: DialogProps) {
  const queries = useQueryClient();
  // What was listed when the dialog opened, whatever the address says meanwhile.
  const [which] = useState(() => whichRuns(filter));
  const [cursor, setCursor] = useState<string | null>(null);
  const [reason, setReason] = useState("");
  const request = (body: Schemas["BulkRequest"], signal?: AbortSignal) =>
    ask(
      api.POST("/api/v1/bulk/{verb}", { params: { path: { verb } }, body, signal, headers: because(reason) }),
    );
  const preview = useQuery({
    queryKey: ["bulk", verb, which, cursor],
    queryFn: ({ signal }) => request({ filter: which, dry_run: true, limit: MOST, cursor }, signal),
    // A preview stays what it is until somebody asks for another.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  });
  const apply = useMutation({
    mutationFn: (runs: Outcome["preview"]) => request({ preview: runs }),
    onSettled: () => void queries.invalidateQueries({ queryKey: ["runs"] }),
  });
  const rest = apply.data ? preview.data?.next : null;
  const goOn = (next: string) => {
    apply.reset();
    setCursor(next);
  };
  const error = preview.error ?? apply.error;
  return (
    <Dialog
      open
      onClose={onClose}
      wide
      title={apply.data ? `Done: ${verb}` : `${capital(verb)} every run that is listed`}
      description={VERBS[verb].summary}
      footer={
        <>
          <Button onClick={onClose}>{apply.data ? "Close" : "Leave it"}</Button>
          {rest && <Button onClick={() => goOn(rest)}>Preview the rest</Button>}
          {!apply.data && (
            <>
              <Button
                disabled={preview.isFetching || apply.isPending}
                onClick={() => {
                  apply.reset();
                  void preview.refetch();
                }}
              >
                Preview again
              </Button>
              <Button
                look={verb === "cancel" ? "danger" : "primary"}
                disabled={!preview.data?.done || preview.isFetching || apply.isPending}
                onClick={() => preview.data && apply.mutate(preview.data.preview)}
              >
                {apply.isPending
                  ? "Working…"
                  : `${capital(verb)} ${preview.data ? count(preview.data.done, "run") : ""}`}
              </Button>
            </>
          )}
        </>
      }
    >
      <p className="mb-2 text-[13px] break-words text-ink-2">{inWords(which)}</p>
      {!apply.data && (
        <div className="mb-3">
          <Reason value={reason} onChange={setReason} />
        </div>
      )}
      {error && <Failure error={error} className="m-0!" />}
      {preview.isPending && <Loading rows={3} />}
      {apply.data ? (
        <Result record={apply.data} hasMore={!!rest} />
      ) : (
        preview.data && <Preview record={preview.data} />
      )}
    </Dialog>
  );
}

const Preview = ({ record }: { record: Outcome }) => (
  <>
    <p className="mb-2 text-[13px]">
      <b>{count(record.done, "run")}</b> would take it, and <b>{count(record.nodes, "node")}</b> would change
      {record.refused > 0 && `; ${count(record.refused, "run")} would refuse it`}. This is how it was at{" "}
      {exactTime(record.at)}.{" "}
      {record.more &&
        "More runs match than one request takes: these are the newest, the rest comes after them. "}
      Only these runs are touched; one that changes in the meantime is left alone.
    </p>
    <Runs record={record} />
  </>
);

const Result = ({ record, hasMore }: { record: Outcome; hasMore: boolean }) => (
  <>
    <p className="mb-2 text-[13px]">
      It was done to <b>{count(record.done, "run")}</b>
      {record.refused > 0 && `; ${count(record.refused, "run")} refused it`}
      {record.changed > 0 &&
        `; ${count(record.changed, "run")} changed after the preview and ${record.changed === 1 ? "was" : "were"} left alone`}
      .{hasMore && " More runs match: preview the rest to go on with them."}
    </p>
    <Runs record={record} />
  </>
);

function Runs({ record }: { record: Outcome }) {
  const runs = [...record.runs].sort((a, b) => Number(a.outcome === "done") - Number(b.outcome === "done"));
  const left = runs.length - SHOWN;
  return (
    <>
      <ul className="divide-y divide-line rounded-md border border-line">
        {runs.slice(0, SHOWN).map((each) => (
          <li key={each.run} className="flex items-center gap-3 px-3 py-1.5 text-xs">
            {each.status ? <Status status={each.status} /> : <span className="text-ink-3">gone</span>}
            <span className="truncate font-mono">{each.run}</span>
            <span className="flex-1" />
            <span className={each.outcome === "done" ? "text-ink-3" : "text-danger"}>
              {each.detail ?? (each.nodes === null ? "done" : count(each.nodes, "node"))}
            </span>
          </li>
        ))}
      </ul>
      {left > 0 && <p className="mt-2 text-xs text-ink-3">and {count(left, "more run")}</p>}
    </>
  );
}
