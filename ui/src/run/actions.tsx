import { useNavigate } from "@tanstack/react-router";
import {
  Ban,
  CirclePause,
  CirclePlay,
  Copy,
  EllipsisVertical,
  GitCompareArrows,
  GitFork,
  History,
  RotateCcw,
  Trash2,
} from "lucide-react";
import { type ReactNode, useState } from "react";
import { allows, hasEnded, PAUSES } from "@/api/tables";
import { useSession } from "@/shell/session";
import { Button, IconButton } from "@/ui/button";
import { Menu } from "@/ui/overlays";
import { isBuilt, type RunDetail } from "./data";
import { Fork } from "./fork";
import { ReplayDialog } from "./replay";
import { DeleteDialog, type RunVerb, SteerDialog } from "./steer";

const VERBS: { verb: RunVerb; label: string; icon: ReactNode; look?: "danger" }[] = [
  { verb: "retry", label: "Retry", icon: <RotateCcw size={14} /> },
  { verb: "resume", label: "Resume", icon: <CirclePlay size={14} /> },
  { verb: "pause", label: "Pause", icon: <CirclePause size={14} /> },
  { verb: "cancel", label: "Cancel", icon: <Ban size={14} />, look: "danger" },
];

/** Of a run that is paused since a node failed, both may be meant, and do not do the same. */
const AFTER_FAILURE: Partial<Record<RunVerb, string>> = {
  retry: "Run again what failed, and go on",
  resume: "Go on without what failed",
};

/** The one that one wants most of the time. */
const goesOn = (run: RunDetail): RunVerb =>
  run.status === "PAUSED" && run.reason !== PAUSES.failed ? "resume" : "retry";

/** What may be done with a run by whoever looks at it, in its status. */
export function RunActions({ run, isPast }: { run: RunDetail; isPast: boolean }) {
  const { may } = useSession();
  const navigate = useNavigate();
  const [verb, setVerb] = useState<RunVerb | null>(null);
  const [dialog, setDialog] = useState<"fork" | "delete" | "replay" | null>(null);
  const offered = may("run") && !isPast ? VERBS.filter((each) => allows(each.verb, run.status)) : [];
  return (
    <div className="flex items-center gap-1.5">
      {offered.map((each) => (
        <Button
          key={each.verb}
          small
          look={each.verb === goesOn(run) ? "primary" : each.look}
          icon={each.icon}
          title={run.reason === PAUSES.failed ? AFTER_FAILURE[each.verb] : undefined}
          onClick={() => setVerb(each.verb)}
        >
          {each.label}
        </Button>
      ))}
      <Menu
        label="More"
        trigger={
          <IconButton label="More">
            <EllipsisVertical size={16} />
          </IconButton>
        }
        items={[
          ...(may("run")
            ? [
                { label: "Fork…", icon: <GitFork size={14} />, onSelect: () => setDialog("fork") },
                { label: "Replay…", icon: <History size={14} />, onSelect: () => setDialog("replay") },
                {
                  label: isBuilt(run)
                    ? "Start again: from the program that built it"
                    : "Start again with this input…",
                  disabled: isBuilt(run),
                  icon: <Copy size={14} />,
                  onSelect: () =>
                    void navigate({
                      to: "/workflows/$name",
                      params: { name: run.workflow },
                      search: { tab: "start", from: run.id },
                    }),
                },
              ]
            : []),
          {
            label: "Compare with its origin",
            icon: <GitCompareArrows size={14} />,
            disabled: !run.origin,
            onSelect: () =>
              run.origin &&
              void navigate({
                to: "/compare/$runId/$otherId",
                params: { runId: run.origin.run, otherId: run.id },
              }),
          },
          ...(may("admin")
            ? [
                null,
                {
                  label: "Delete…",
                  icon: <Trash2 size={14} />,
                  danger: true,
                  disabled: !hasEnded(run.status),
                  onSelect: () => setDialog("delete"),
                },
              ]
            : []),
        ]}
      />
      {verb && <SteerDialog run={run} verb={verb} onClose={() => setVerb(null)} />}
      {dialog === "fork" && <Fork run={run} at={null} onClose={() => setDialog(null)} />}
      {dialog === "replay" && <ReplayDialog run={run} onClose={() => setDialog(null)} />}
      {dialog === "delete" && <DeleteDialog run={run} onClose={() => setDialog(null)} />}
    </div>
  );
}
