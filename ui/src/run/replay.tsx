import { useMutation } from "@tanstack/react-query";
import { CircleCheck, CircleX } from "lucide-react";
import { api, ask } from "@/api/client";
import { Button } from "@/ui/button";
import { Command } from "@/ui/copy";
import { Dialog } from "@/ui/overlays";
import { Failure, Loading } from "@/ui/states";
import { duration } from "@/ui/time";
import type { RunDetail } from "./data";
import { useRunSearch } from "./search";

/** Runs the bodies again that may be repeated, with the code of the server, and shows where they first differ from the record. */
export function ReplayDialog({ run, onClose }: { run: RunDetail; onClose: () => void }) {
  const { change } = useRunSearch();
  const replay = useMutation({
    mutationFn: () => ask(api.POST("/api/v1/runs/{run_id}/replay", { params: { path: { run_id: run.id } } })),
  });
  const { data } = replay;
  return (
    <Dialog
      open
      onClose={onClose}
      wide
      title="Replay this run"
      description="Bodies that may be repeated run again, with the code as it is now. Every effect is answered from the record, and nothing is stored."
      footer={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button look="primary" disabled={replay.isPending} onClick={() => replay.mutate()}>
            {replay.isIdle ? "Replay" : replay.isPending ? "Replaying…" : "Replay again"}
          </Button>
        </>
      }
    >
      <div className="space-y-3 pb-2 text-[13px]">
        {replay.isPending && <Loading rows={3} label="Replaying" />}
        {replay.error && <Failure error={replay.error} className="m-0!" />}
        {data?.replay && (
          <div data-status="COMPLETED" className="space-y-2">
            <p className="flex items-center gap-2 font-medium text-[var(--st)]">
              <CircleCheck size={16} /> The same, byte for byte: {data.replay.executed.length} executed,{" "}
              {Object.keys(data.replay.stubbed).length} from the record, {data.replay.effects} effects served,
              in {duration(data.replay.seconds)}
            </p>
            {data.replay.executed.length === 0 && (
              <p className="text-warn">
                No body may be repeated: mark those that may with side_effects="pure" or "recordable".
              </p>
            )}
            <ul className="max-h-60 overflow-auto text-xs text-ink-2">
              {Object.entries(data.replay.stubbed).map(([node, reason]) => (
                <li key={node}>
                  <b className="font-medium">{node}</b>: {reason}
                </li>
              ))}
            </ul>
          </div>
        )}
        {data?.mismatch && (
          <div data-status="FAILED" className="space-y-2">
            <p className="flex items-center gap-2 font-medium text-[var(--st)]">
              <CircleX size={16} /> {data.mismatch.what}
            </p>
            {data.mismatch.node && (
              <Button
                small
                onClick={() => {
                  change({
                    node: data.mismatch!.node!,
                    attempt: data.mismatch!.attempt ?? undefined,
                    tab: "attempts",
                  });
                  onClose();
                }}
              >
                {data.mismatch.node}, attempt {data.mismatch.attempt}
                {data.mismatch.effect !== null &&
                  data.mismatch.effect >= 0 &&
                  `, effect ${data.mismatch.effect}`}
              </Button>
            )}
            <pre className="max-h-72 overflow-auto rounded-md border border-line bg-canvas p-3 font-mono text-xs leading-5 whitespace-pre-wrap">
              {data.mismatch.diff.join("\n")}
            </pre>
          </div>
        )}
        <Command text={`stepwell replay ${run.id}`} />
      </div>
    </Dialog>
  );
}
