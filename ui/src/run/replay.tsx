import { useMutation } from "@tanstack/react-query";
import { CircleCheck, CircleX, Download } from "lucide-react";
import { api, ask, type Schemas } from "@/api/client";
import { Button } from "@/ui/button";
import { Command } from "@/ui/copy";
import { Dialog } from "@/ui/overlays";
import { Failure } from "@/ui/states";
import { duration } from "@/ui/time";
import { ByWorker, needsCode, useByWorker } from "./by-worker";
import type { RunDetail } from "./data";
import { count } from "./failures";
import { useRunSearch } from "./search";

type Outcome = Schemas["ReplayOutcome"];

/** Has a worker run the bodies again that may be repeated, and shows where they first differ from the record. */
export function ReplayDialog({ run, onClose }: { run: RunDetail; onClose: () => void }) {
  const replay = useByWorker<Outcome>("replay", () =>
    ask(api.POST("/api/v1/runs/{run_id}/replay", { params: { path: { run_id: run.id } } })),
  );
  const cassette = useMutation({ mutationFn: (asItIs: boolean) => download(run.id, asItIs) });
  const { result } = replay;
  return (
    <Dialog
      open
      onClose={onClose}
      wide
      title="Replay this run"
      description="A worker runs the bodies again that may be repeated, with the code that it has. Every effect is answered from the record, and nothing is stored in this run."
      footer={
        <>
          <Button
            icon={<Download size={14} />}
            title="What is recorded of this run, as a file to replay anywhere"
            disabled={cassette.isPending}
            onClick={() => cassette.mutate(false)}
          >
            Cassette
          </Button>
          <span className="flex-1" />
          <Button onClick={onClose}>Close</Button>
          <Button look="primary" disabled={replay.isRunning} onClick={replay.start}>
            {replay.isIdle ? "Replay" : replay.isRunning ? "Replaying…" : "Replay again"}
          </Button>
        </>
      }
    >
      <div className="space-y-3 pb-2 text-[13px]">
        {cassette.error && (
          <div className="flex flex-col items-start gap-2">
            <Failure error={cassette.error} className="m-0!" />
            {needsCode(cassette.error) && (
              <Button small onClick={() => cassette.mutate(true)}>
                Download it with the secrets that only this code knows
              </Button>
            )}
          </div>
        )}
        <ByWorker state={replay} label="Replaying" />
        {result?.replay && <Same replay={result.replay} />}
        {result?.mismatch && <Mismatch mismatch={result.mismatch} onClose={onClose} />}
        {!replay.error && <Command text={`stepwell replay ${run.id}`} />}
      </div>
    </Dialog>
  );
}

/** As a file. What a server without the code does not know as secret is not masked: only if that is wanted. */
async function download(run_id: string, missing_code_ok: boolean) {
  const blob = await ask(
    api.GET("/api/v1/runs/{run_id}/cassette", {
      params: { path: { run_id }, query: { missing_code_ok } },
      parseAs: "blob",
    }),
  );
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob as Blob);
  link.download = `${run_id}.cassette.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function Same({ replay }: { replay: NonNullable<Outcome["replay"]> }) {
  const recorded = count(Object.keys(replay.stubbed).length, "node");
  return (
    <div className="space-y-2">
      {replay.executed.length === 0 ? (
        <div className="rounded-lg border border-warn/30 bg-warn-soft px-3 py-2 text-warn">
          <p className="font-medium">Nothing was run again, so nothing was compared.</p>
          <p>
            {recorded} came from the record as they are: no body may be repeated. Mark those that may with
            side_effects="pure" or "recordable".
          </p>
        </div>
      ) : (
        <p data-status="COMPLETED" className="flex items-center gap-2 font-medium text-[var(--st)]">
          <CircleCheck size={16} /> The same, byte for byte: {count(replay.executed.length, "node")} run
          again, {recorded} from the record, {count(replay.effects, "effect")} served, in{" "}
          {duration(replay.seconds)}
        </p>
      )}
      <ul className="max-h-60 overflow-auto text-xs text-ink-2">
        {Object.entries(replay.stubbed).map(([node, reason]) => (
          <li key={node}>
            <b className="font-medium">{node}</b>: {reason}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** What differs first: at which node, attempt and effect, with a line for each place. */
function Mismatch({
  mismatch,
  onClose,
}: {
  mismatch: NonNullable<Outcome["mismatch"]>;
  onClose: () => void;
}) {
  const { change } = useRunSearch();
  const { node, attempt, effect } = mismatch;
  const isOfEffect = effect !== null && effect >= 0;
  return (
    <div data-status="FAILED" className="space-y-2">
      <p className="flex items-center gap-2 font-medium text-[var(--st)]">
        <CircleX size={16} /> <span className="block first-letter:uppercase">{mismatch.what}</span>
      </p>
      {node && (
        <Button
          small
          onClick={() => {
            change({ node, attempt: attempt ?? undefined, tab: isOfEffect ? "effects" : "attempts" });
            onClose();
          }}
        >
          {node}, attempt {attempt}
          {isOfEffect && `, effect ${effect}`}
        </Button>
      )}
      <pre className="max-h-72 overflow-auto rounded-md border border-line bg-canvas p-3 font-mono text-xs leading-5 whitespace-pre-wrap">
        {mismatch.diff.join("\n")}
      </pre>
    </div>
  );
}
