import { useQuery } from "@tanstack/react-query";
import { History, Pause, Play, StepBack, StepForward } from "lucide-react";
import { useEffect, useState } from "react";
import { api, ask } from "@/api/client";
import { useSession } from "@/shell/session";
import { Button, IconButton } from "@/ui/button";
import type { RunDetail } from "./data";
import { Fork } from "./fork";
import { StateButton } from "./state";

type Props = { run: RunDetail; seq: number | undefined; onChange: (seq: number | undefined) => void };

const STEP = 350;
/** Entries in one step of play. */
const SPEEDS = [1, 4, 16, 64];

/** Drag through the history of a run: graph and statuses are shown as they were at that entry of the journal. */
export function Scrubber({ run, seq, onChange }: Props) {
  const { may } = useSession();
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(SPEEDS[0]!);
  const [dragged, setDragged] = useState<number | null>(null);
  const [forking, setForking] = useState(false);
  const isPast = seq !== undefined;
  const at = dragged ?? seq ?? run.seq;
  const checkpoints = useQuery({
    queryKey: ["checkpoints", run.id],
    queryFn: () =>
      ask(api.GET("/api/v1/runs/{run_id}/checkpoints", { params: { path: { run_id: run.id } } })),
  });
  // What is dragged over is not asked for: only where the drag rests.
  useEffect(() => {
    if (dragged === null) return;
    const timer = setTimeout(() => {
      onChange(dragged >= run.seq ? undefined : dragged);
      setDragged(null);
    }, 120);
    return () => clearTimeout(timer);
  }, [dragged, onChange, run.seq]);
  useEffect(() => {
    if (!playing || seq === undefined) return;
    const timer = setTimeout(() => {
      const next = seq + speed;
      if (next >= run.seq) setPlaying(false);
      onChange(next >= run.seq ? undefined : next);
    }, STEP);
    return () => clearTimeout(timer);
  }, [playing, speed, seq, run.seq, onChange]);

  return (
    <div className="flex min-w-60 flex-1 flex-wrap items-center gap-1.5">
      <IconButton
        label={playing ? "Stop" : "Play the history"}
        onClick={() => {
          if (!isPast || seq >= run.seq) onChange(1);
          setPlaying(!playing);
        }}
      >
        {playing ? <Pause size={14} /> : <Play size={14} />}
      </IconButton>
      {isPast && (
        <IconButton
          label={`Speed of play: ${speed} ${speed === 1 ? "entry" : "entries"} at a time`}
          className="text-xs tabular"
          onClick={() => setSpeed(SPEEDS[(SPEEDS.indexOf(speed) + 1) % SPEEDS.length]!)}
        >
          {speed}×
        </IconButton>
      )}
      <IconButton label="One entry back" disabled={at <= 1} onClick={() => onChange(Math.max(1, at - 1))}>
        <StepBack size={14} />
      </IconButton>
      <span className="relative flex min-w-24 flex-1 items-center">
        <input
          type="range"
          min={1}
          max={Math.max(1, run.seq)}
          value={at}
          aria-label="Moment of the history"
          aria-valuetext={isPast ? `entry ${at} of ${run.seq}` : "now"}
          onChange={(event) => {
            setPlaying(false);
            setDragged(Number(event.target.value));
          }}
          className="scrubber w-full"
          data-past={isPast || dragged !== null || undefined}
        />
        {checkpoints.data?.map((each) => (
          <button
            key={each.step}
            type="button"
            title={`checkpoint ${each.label}`}
            aria-label={`Go to the checkpoint ${each.label}`}
            onClick={() => onChange(each.step)}
            className="absolute top-0 size-2 -translate-x-1/2 rotate-45 bg-[var(--st-waiting)]"
            style={{ left: `${(100 * (each.step - 1)) / Math.max(1, run.seq - 1)}%` }}
          />
        ))}
      </span>
      <IconButton
        label="One entry on"
        disabled={!isPast}
        onClick={() => onChange(at + 1 >= run.seq ? undefined : at + 1)}
      >
        <StepForward size={14} />
      </IconButton>
      <span className="min-w-20 text-right text-xs text-ink-2 tabular">
        {isPast || dragged !== null ? `${at.toLocaleString()} / ${run.seq.toLocaleString()}` : "now"}
      </span>
      {isPast && (
        <>
          <Button small icon={<History size={13} />} onClick={() => onChange(undefined)}>
            Back to now
          </Button>
          <StateButton run={run} at={at} />
          {may("run") && (
            <Button small onClick={() => setForking(true)}>
              Fork from here
            </Button>
          )}
        </>
      )}
      {forking && <Fork run={run} at={seq ?? run.seq} onClose={() => setForking(false)} />}
    </div>
  );
}
