import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Columns2, X } from "lucide-react";
import type { Schemas } from "@/api/client";
import { nodeQuery } from "@/run/data";
import { Value } from "@/run/output";
import { Button, IconButton } from "@/ui/button";
import { Dialog } from "@/ui/overlays";
import { Card } from "@/ui/page";
import { Failure, Loading } from "@/ui/states";
import { Status } from "@/ui/status";
import { duration } from "@/ui/time";
import type { Change, Pair } from "./data";
import { differsIn } from "./marks";

type Props = {
  pair: Pair;
  runs: readonly [string, string];
  onWhole: () => void;
  onClose: () => void;
};

/** A node in both runs. */
export function PairPanel({ pair, runs, onWhole, onClose }: Props) {
  const facts = (name: string, of: (side: NonNullable<Pair["first"]>) => React.ReactNode) => (
    <tr className="border-t border-line">
      <th scope="row" className="py-1.5 text-left font-normal text-ink-3">
        {name}
      </th>
      <td>{pair.first ? of(pair.first) : "–"}</td>
      <td>{pair.second ? of(pair.second) : "–"}</td>
    </tr>
  );
  return (
    <aside
      aria-label="Node in both runs"
      // On narrow screens it is a sheet over the page, as that of a node of one run.
      className="fixed inset-x-0 top-12 bottom-14 z-20 space-y-3 overflow-auto bg-paper p-4 md:bottom-0 md:left-44 lg:static lg:z-auto lg:w-[26rem] lg:shrink-0 lg:border-l lg:border-line"
    >
      <div className="flex items-start gap-2">
        <h2 className="min-w-0 flex-1 text-[15px] font-semibold break-words">{pair.name}</h2>
        <IconButton label="Close" onClick={onClose}>
          <X size={15} />
        </IconButton>
      </div>
      <p className={pair.differs.length ? "text-[13px] text-danger" : "text-[13px] text-ink-2"}>
        {differsIn(pair)}
      </p>
      <table className="w-full text-xs">
        <thead>
          <tr className="text-left text-ink-3">
            <td className="py-1" />
            {(["First", "Second"] as const).map((label, index) => (
              <th key={label} scope="col" className="font-medium">
                {pair[index === 0 ? "first" : "second"] ? (
                  <Link
                    to="/runs/$runId"
                    params={{ runId: runs[index]! }}
                    search={{ node: pair.id }}
                    className="text-accent hover:underline"
                  >
                    {label}
                  </Link>
                ) : (
                  label
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {facts("Status", (side) => (
            <Status status={side.status} plain />
          ))}
          {facts("Attempts", (side) => side.attempts)}
          {facts("Took", (side) => (side.seconds === null ? "–" : duration(side.seconds)))}
        </tbody>
      </table>
      <Button small icon={<Columns2 size={13} />} onClick={onWhole}>
        Whole outputs side by side
      </Button>
      {pair.output.length > 0 && <Changes title="Their outputs" changes={pair.output} />}
      {pair.delta.length > 0 && <Changes title="Their changes of state" changes={pair.delta} />}
    </aside>
  );
}

/** Where two values differ: the path, and what each has there. */
export function Changes({ title, changes }: { title: string; changes: readonly Change[] }) {
  return (
    <Card title={title}>
      <table className="w-full table-fixed text-xs">
        <thead className="sr-only">
          <tr>
            <th>Where</th>
            <th>First</th>
            <th>Second</th>
          </tr>
        </thead>
        <tbody>
          {changes.map((change) => (
            <tr key={change.path} className="border-t border-line align-top first:border-t-0">
              <td className="w-1/4 px-3 py-1.5 font-mono break-all text-ink-2">
                {change.path === "$" ? "all of it" : change.path}
              </td>
              <td className="px-3 py-1.5 font-mono break-all text-danger">{change.first ?? "–"}</td>
              <td className="px-3 py-1.5 font-mono break-all text-ok">{change.second ?? "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

/** What the node returned in each of the runs, whole. */
export function WholeOutputs({ pair, runs, onClose }: Omit<Props, "onWhole">) {
  return (
    <Dialog open onClose={onClose} wide title={`Outputs of ${pair.name}`}>
      <div className="grid gap-4 pb-3 md:grid-cols-2">
        {(["First", "Second"] as const).map((label, index) => (
          <section key={label} aria-label={`${label} run`} className="min-w-0">
            <h3 className="mb-1.5 text-2xs font-medium tracking-wide text-ink-3 uppercase">{label}</h3>
            {pair[index === 0 ? "first" : "second"] ? (
              <Output run={runs[index]!} node={pair.id} />
            ) : (
              <p className="text-[13px] text-ink-3">This run does not have the node.</p>
            )}
          </section>
        ))}
      </div>
    </Dialog>
  );
}

function Output({ run, node }: { run: string; node: string }) {
  const { data, error, refetch } = useQuery(nodeQuery(run, node));
  if (error) return <Failure error={error} retry={() => void refetch()} className="m-0!" />;
  if (!data) return <Loading rows={3} />;
  const output = (data as Schemas["NodeDetail"]).output;
  if (!output) return <p className="text-[13px] text-ink-3">It has not completed, or returned nothing.</p>;
  return <Value output={output} />;
}
