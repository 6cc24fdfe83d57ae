import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { ArrowLeftRight } from "lucide-react";
import { useCallback, useMemo, useState } from "react";
import type { Schemas } from "@/api/client";
import { type GraphItem, type GraphRecord, readGraph } from "@/graph/model";
import { GraphView } from "@/graph/view";
import { graphQuery } from "@/run/data";
import { IconButton } from "@/ui/button";
import { Command } from "@/ui/copy";
import { Segments } from "@/ui/fields";
import { Card, PageHead } from "@/ui/page";
import { type Column, Rows } from "@/ui/rows";
import { Failure, Loading } from "@/ui/states";
import { Status } from "@/ui/status";
import { duration } from "@/ui/time";
import { useComparison } from "./data";

type Pair = Schemas["PairRecord"];
type Change = Schemas["ChangeRecord"];

const WORDS: Record<Pair["differs"][number], string> = {
  output: "other output",
  delta: "other change of state",
  missing: "only in one",
  status: "other status",
  attempts: "other number of attempts",
};

/** Two runs side by side: where they first part, what differs, and what took longer. */
export function ComparePage() {
  const { runId, otherId } = useParams({ from: "/compare/$runId/$otherId" });
  const { node } = useSearch({ from: "/compare/$runId/$otherId" });
  const navigate = useNavigate({ from: "/compare/$runId/$otherId" });
  const [view, setView] = useState<"graph" | "nodes">("graph");
  const { data, error, isPending, refetch } = useComparison(runId, otherId);
  const select = useCallback(
    (id: string | null) => void navigate({ search: id ? { node: id } : {}, replace: true }),
    [navigate],
  );
  if (isPending) return <Loading />;
  if (error) return <Failure error={error} retry={() => void refetch()} />;
  const differing = data.nodes.filter((pair) => pair.differs.length > 0);
  const chosen = data.nodes.find((pair) => pair.id === node);
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <PageHead
        title="Compare"
        note={
          differing.length === 0
            ? "no node differs"
            : `${differing.length.toLocaleString()} ${differing.length === 1 ? "node differs" : "nodes differ"}`
        }
      >
        <IconButton
          label="Change sides"
          onClick={() =>
            void navigate({
              to: "/compare/$runId/$otherId",
              params: { runId: otherId, otherId: runId },
              search: {},
            })
          }
        >
          <ArrowLeftRight size={15} />
        </IconButton>
      </PageHead>
      <div className="grid gap-3 border-b border-line bg-paper px-4 pb-3 md:grid-cols-2">
        <Side side={data.first} label="First" />
        <Side side={data.second} label="Second" />
      </div>
      {(data.input.length > 0 || data.graph.length > 0) && (
        <div className="grid gap-3 border-b border-line bg-paper px-4 py-3 md:grid-cols-2">
          {data.input.length > 0 && <Changes title="Their inputs differ" changes={data.input} />}
          {data.graph.length > 0 && (
            <Changes title="Their nodes are defined differently" changes={data.graph} />
          )}
        </div>
      )}
      <div className="flex flex-wrap items-center gap-3 border-b border-line bg-paper px-4 py-2">
        <Segments
          label="View"
          value={view}
          onChange={setView}
          options={[
            { value: "graph", label: "Graph" },
            { value: "nodes", label: "Nodes" },
          ]}
        />
        {data.parting && (
          <p className="text-[13px]">
            They first part at{" "}
            <button
              type="button"
              className="font-medium text-accent hover:underline"
              onClick={() => select(data.parting!.id)}
            >
              {data.parting.name}
            </button>
          </p>
        )}
        <span className="flex-1" />
        <span className="hidden lg:block">
          <Command text={`stepwell diff ${runId} ${otherId}`} />
        </span>
      </div>
      <div className="flex min-h-80 flex-1 flex-col lg:flex-row">
        {view === "graph" ? (
          <ComparedGraph run={otherId} pairs={data.nodes} selected={node ?? null} onSelect={select} />
        ) : (
          <Rows
            rows={data.nodes}
            columns={COLUMNS}
            keyOf={(pair) => pair.id}
            label="Nodes of both runs"
            height={36}
            selected={node ?? null}
            onOpen={(pair) => select(pair.id)}
          />
        )}
        {chosen && <PairPanel pair={chosen} runs={[runId, otherId]} />}
      </div>
    </div>
  );
}

function Side({ side, label }: { side: Schemas["SideRecord"]; label: string }) {
  return (
    <div className="flex flex-wrap items-center gap-2 rounded-lg border border-line px-3 py-2 text-[13px]">
      <span className="text-2xs text-ink-3 uppercase">{label}</span>
      <Link to="/runs/$runId" params={{ runId: side.run }} className="font-medium hover:underline">
        {side.workflow}
      </Link>
      <span className="min-w-0 truncate font-mono text-xs text-ink-3">{side.run}</span>
      <span className="flex-1" />
      <Status status={side.status} />
      {side.seconds !== null && <span className="tabular">{duration(side.seconds)}</span>}
    </div>
  );
}

function Changes({ title, changes }: { title: string; changes: readonly Change[] }) {
  return (
    <Card title={title}>
      <table className="w-full table-fixed text-xs">
        <tbody>
          {changes.map((change) => (
            <tr key={change.path} className="border-t border-line align-top first:border-t-0">
              <td className="w-1/4 px-3 py-1.5 font-mono break-all text-ink-2">{change.path}</td>
              <td className="px-3 py-1.5 font-mono break-all text-danger">{change.first ?? "–"}</td>
              <td className="px-3 py-1.5 font-mono break-all text-ok">{change.second ?? "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

const COLUMNS: Column<Pair>[] = [
  { name: "Node", width: "minmax(0,2fr)", cell: (pair) => <span className="font-medium">{pair.name}</span> },
  {
    name: "Differs",
    width: "minmax(0,2fr)",
    cell: (pair) => (
      <span className={pair.differs.length ? "text-danger" : "text-ink-3"}>
        {pair.differs.map((each) => WORDS[each]).join(", ") || "the same"}
      </span>
    ),
  },
  {
    name: "First",
    width: "8rem",
    cell: (pair) => (pair.first ? <Status status={pair.first.status} plain /> : "–"),
  },
  {
    name: "Second",
    width: "8rem",
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

type GraphProps = {
  run: string;
  pairs: readonly Pair[];
  selected: string | null;
  onSelect: (id: string | null) => void;
};

/** The graph of the second run: what is the same in both is faded. */
function ComparedGraph({ run, pairs, selected, onSelect }: GraphProps) {
  const [open, setOpen] = useState<string[]>([]);
  const { data, error } = useQuery(graphQuery(run, open, undefined));
  const graph = useMemo(() => (data ? readGraph(data as GraphRecord) : null), [data]);
  const differs = useMemo(
    () => new Map(pairs.filter((pair) => pair.differs.length).map((pair) => [pair.id, pair.differs])),
    [pairs],
  );
  const isDim = useCallback((item: GraphItem) => item.kind === "node" && !differs.has(item.id), [differs]);
  if (error) return <Failure error={error} />;
  if (!graph) return <Loading />;
  return (
    <GraphView
      graph={graph}
      selected={selected}
      onSelect={onSelect}
      onToggle={(group) =>
        setOpen(open.includes(group) ? open.filter((each) => each !== group) : [...open, group])
      }
      isDim={isDim}
      noteOf={(node) =>
        differs
          .get(node.id)
          ?.map((each) => WORDS[each])
          .join(", ") ?? "the same"
      }
      label="Graph of the second run, with what differs"
    />
  );
}

function PairPanel({ pair, runs }: { pair: Pair; runs: [string, string] }) {
  return (
    <aside
      aria-label="Node in both runs"
      className="w-full shrink-0 space-y-3 overflow-auto border-t border-line bg-paper p-4 lg:w-[30rem] lg:border-t-0 lg:border-l"
    >
      <h2 className="text-[15px] font-semibold">{pair.name}</h2>
      <p className={pair.differs.length ? "text-[13px] text-danger" : "text-[13px] text-ink-2"}>
        {pair.differs.map((each) => WORDS[each]).join(", ") || "The same in both runs"}
      </p>
      <table className="w-full text-xs">
        <thead>
          <tr className="text-left text-ink-3">
            <th className="py-1 font-medium" />
            <th className="font-medium">
              <Link
                to="/runs/$runId"
                params={{ runId: runs[0] }}
                search={{ node: pair.id }}
                className="hover:underline"
              >
                First
              </Link>
            </th>
            <th className="font-medium">
              <Link
                to="/runs/$runId"
                params={{ runId: runs[1] }}
                search={{ node: pair.id }}
                className="hover:underline"
              >
                Second
              </Link>
            </th>
          </tr>
        </thead>
        <tbody>
          <tr className="border-t border-line">
            <td className="py-1.5 text-ink-3">Status</td>
            <td>{pair.first ? <Status status={pair.first.status} plain /> : "–"}</td>
            <td>{pair.second ? <Status status={pair.second.status} plain /> : "–"}</td>
          </tr>
          <tr className="border-t border-line">
            <td className="py-1.5 text-ink-3">Attempts</td>
            <td>{pair.first?.attempts ?? "–"}</td>
            <td>{pair.second?.attempts ?? "–"}</td>
          </tr>
          <tr className="border-t border-line">
            <td className="py-1.5 text-ink-3">Took</td>
            <td>{pair.first?.seconds == null ? "–" : duration(pair.first.seconds)}</td>
            <td>{pair.second?.seconds == null ? "–" : duration(pair.second.seconds)}</td>
          </tr>
        </tbody>
      </table>
      {pair.output.length > 0 && <Changes title="Their outputs" changes={pair.output} />}
      {pair.delta.length > 0 && <Changes title="Their changes of state" changes={pair.delta} />}
    </aside>
  );
}
