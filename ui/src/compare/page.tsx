import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import clsx from "clsx";
import { ArrowLeftRight } from "lucide-react";
import { useMemo } from "react";
import type { Schemas } from "@/api/client";
import { IconButton } from "@/ui/button";
import { Command } from "@/ui/copy";
import { Segments } from "@/ui/fields";
import { PageHead } from "@/ui/page";
import { type Column, Rows } from "@/ui/rows";
import { Failure, Loading } from "@/ui/states";
import { Status } from "@/ui/status";
import { duration } from "@/ui/time";
import { type Pair, useComparison } from "./data";
import { ComparedGraph, OnlyInFirst } from "./graph";
import { differsIn } from "./marks";
import { Changes, PairPanel, WholeOutputs } from "./pair";
import { byTime, secondsMore } from "./times";

type Search = { view?: "nodes" | "times"; node?: string; outputs?: true };

/** Two runs side by side: where they first part, what differs, and what took longer. */
export function ComparePage() {
  const { runId, otherId } = useParams({ from: "/compare/$runId/$otherId" });
  const search = useSearch({ from: "/compare/$runId/$otherId" });
  const navigate = useNavigate({ from: "/compare/$runId/$otherId" });
  const view = search.view ?? "graph";
  const { comparison, nodes, parting, error, retry, fetchMore } = useComparison(runId, otherId, {
    all: view === "times",
  });
  const rows = useMemo(() => (view === "times" ? byTime(nodes) : nodes), [view, nodes]);
  const change = (part: Partial<Search>) =>
    void navigate({ search: (now) => ({ ...now, ...part }), replace: true });
  const select = (node: string | null) => change({ node: node ?? undefined, outputs: undefined });
  if (!comparison) return error ? <Failure error={error} retry={retry} /> : <Loading />;
  const chosen = nodes.find((pair) => pair.id === search.node);
  const runs = [runId, otherId] as const;
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <PageHead title="Compare" note={noteOf(comparison.different)}>
        <IconButton
          label="Change sides"
          onClick={() =>
            void navigate({
              to: "/compare/$runId/$otherId",
              params: { runId: otherId, otherId: runId },
              search: (now) => now,
            })
          }
        >
          <ArrowLeftRight size={15} />
        </IconButton>
      </PageHead>
      <Sides comparison={comparison} />
      {error && <Failure error={error} retry={retry} />}
      <div className="flex shrink-0 flex-wrap items-center gap-3 border-b border-line bg-paper px-4 py-2">
        <Segments
          label="View"
          value={view}
          onChange={(next) => change({ view: next === "graph" ? undefined : next })}
          options={[
            { value: "graph", label: "Graph" },
            { value: "nodes", label: "Nodes" },
            { value: "times", label: "Times" },
          ]}
        />
        {parting && (
          <p className="text-[13px]">
            They first part at{" "}
            <button
              type="button"
              className="font-medium text-accent hover:underline"
              onClick={() => select(parting.id)}
            >
              {parting.name}
            </button>
          </p>
        )}
        <span className="flex-1" />
        <span className="hidden min-w-0 lg:block">
          <Command text={`stepwell diff ${runId} ${otherId}`} />
        </span>
      </div>
      {view === "graph" && <OnlyInFirst pairs={nodes} onSelect={select} />}
      <div className="flex min-h-80 flex-1 flex-col lg:flex-row">
        <div className={clsx("flex flex-1 flex-col lg:min-h-0", chosen ? "min-h-56" : "min-h-0")}>
          {view === "graph" ? (
            <ComparedGraph
              run={otherId}
              pairs={nodes}
              groups={comparison.groups}
              selected={search.node ?? null}
              onSelect={select}
            />
          ) : (
            <Rows
              rows={rows}
              columns={view === "times" ? TIMES : COLUMNS}
              keyOf={(pair) => pair.id}
              label="Nodes of both runs"
              height={36}
              selected={search.node ?? null}
              onOpen={(pair) => select(pair.id)}
              onEnd={fetchMore}
              footer={
                nodes.length < comparison.size && (
                  <p className="px-4 py-3 text-xs text-ink-3">
                    {nodes.length.toLocaleString()} of {comparison.size.toLocaleString()} nodes
                  </p>
                )
              }
            />
          )}
        </div>
        {chosen && (
          <PairPanel
            pair={chosen}
            runs={runs}
            onWhole={() => change({ outputs: true })}
            onClose={() => select(null)}
          />
        )}
      </div>
      {chosen && search.outputs && (
        <WholeOutputs pair={chosen} runs={runs} onClose={() => change({ outputs: undefined })} />
      )}
    </div>
  );
}

const noteOf = (different: number) =>
  different === 0
    ? "no node differs"
    : `${different.toLocaleString()} ${different === 1 ? "node differs" : "nodes differ"}`;

function Sides({ comparison }: { comparison: Schemas["ComparisonRecord"] }) {
  const { first, second, input, graph } = comparison;
  return (
    <>
      <div className="grid shrink-0 gap-3 border-b border-line bg-paper px-4 pb-3 md:grid-cols-2">
        <Side side={first} label="First" />
        <Side side={second} label="Second" than={first.seconds} />
      </div>
      {(input.length > 0 || graph.length > 0) && (
        <div
          className={clsx(
            "grid max-h-[40vh] shrink-0 gap-3 overflow-auto border-b border-line bg-paper px-4 py-3",
            input.length > 0 && graph.length > 0 && "md:grid-cols-2",
          )}
        >
          {input.length > 0 && <Changes title="Their inputs differ" changes={input} />}
          {graph.length > 0 && <Changes title="Their nodes are defined differently" changes={graph} />}
        </div>
      )}
    </>
  );
}

type SideProps = { side: Schemas["SideRecord"]; label: string; than?: number | null };

function Side({ side, label, than }: SideProps) {
  return (
    <div className="flex min-w-0 flex-wrap items-center gap-2 rounded-lg border border-line px-3 py-2 text-[13px] md:flex-nowrap">
      <span className="text-2xs text-ink-3 uppercase">{label}</span>
      <Link to="/runs/$runId" params={{ runId: side.run }} className="font-medium hover:underline">
        {side.workflow}
      </Link>
      <span className="min-w-0 truncate font-mono text-xs text-ink-3">{side.run}</span>
      <span className="flex-1" />
      <Status status={side.status} />
      {side.seconds !== null && <span className="tabular whitespace-nowrap">{duration(side.seconds)}</span>}
      {side.seconds !== null && than != null && <More seconds={side.seconds - than} />}
    </div>
  );
}

/** By how much the second took longer. */
function More({ seconds }: { seconds: number }) {
  if (Math.abs(seconds) < 0.0005) return <span className="text-ink-3">as long</span>;
  return (
    <span className={clsx("whitespace-nowrap tabular", seconds > 0 ? "text-danger" : "text-ok")}>
      {duration(Math.abs(seconds))} {seconds > 0 ? "longer" : "less"}
    </span>
  );
}

const NAME: Column<Pair> = {
  name: "Node",
  width: "minmax(0,2fr)",
  cell: (pair) => <span className="font-medium">{pair.name}</span>,
};

const COLUMNS: Column<Pair>[] = [
  NAME,
  {
    name: "Differs",
    width: "minmax(0,2fr)",
    cell: (pair) => (
      <span className={pair.differs.length ? "text-danger" : "text-ink-3"}>{differsIn(pair)}</span>
    ),
  },
  {
    name: "First",
    width: "8rem",
    wideOnly: true,
    cell: (pair) => (pair.first ? <Status status={pair.first.status} plain /> : "–"),
  },
  {
    name: "Second",
    width: "8rem",
    wideOnly: true,
    cell: (pair) => (pair.second ? <Status status={pair.second.status} plain /> : "–"),
  },
  {
    name: "Time",
    width: "5rem",
    align: "right",
    wideOnly: true,
    cell: (pair) => (pair.ratio === null ? "" : `× ${pair.ratio.toFixed(2)}`),
  },
];

const seconds = (value: number | null | undefined) => (value == null ? "–" : duration(value));

const TIMES: Column<Pair>[] = [
  NAME,
  {
    name: "First",
    width: "6rem",
    align: "right",
    wideOnly: true,
    cell: (pair) => seconds(pair.first?.seconds),
  },
  {
    name: "Second",
    width: "6rem",
    align: "right",
    wideOnly: true,
    cell: (pair) => seconds(pair.second?.seconds),
  },
  {
    name: "Second took",
    width: "9rem",
    align: "right",
    cell: (pair) => {
      const more = secondsMore(pair);
      return more === null ? "–" : <More seconds={more} />;
    },
  },
];
