import { StatusBar } from "@/ui/status";

type Counted = { status: string; nodes_total: number; nodes_open: number; nodes_failed: number };

/** What of a run has ended. Of a run that failed or was cancelled lists do not know how the others ended, so they are not green. */
export function NodesBar({ run, className }: { run: Counted; className?: string }) {
  const others = run.nodes_total - run.nodes_open - run.nodes_failed;
  const name = run.status === "FAILED" || run.status === "CANCELLED" ? "ENDED" : "COMPLETED";
  return (
    <StatusBar
      className={className}
      counts={{ [name]: others, FAILED: run.nodes_failed, PENDING: run.nodes_open }}
    />
  );
}
