import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { type Graph, type GraphItem, type GraphRecord, readGraph } from "@/graph/model";
import { GraphView } from "@/graph/view";
import { graphQuery } from "@/run/data";
import { Failure, Loading } from "@/ui/states";
import type { Pair } from "./data";
import { briefly, MARKS, markOf } from "./marks";

type Props = {
  run: string;
  pairs: readonly Pair[];
  /** How many nodes differ in each group. */
  groups: Record<string, number>;
  selected: string | null;
  onSelect: (id: string | null) => void;
};

const NONE: string[] = [];

/** The graph of the second run, coloured by difference: what is the same in both is faded, and groups say how many of theirs differ. */
export function ComparedGraph({ run, pairs, groups, selected, onSelect }: Props) {
  const { open = NONE } = useSearch({ from: "/compare/$runId/$otherId" });
  const navigate = useNavigate({ from: "/compare/$runId/$otherId" });
  const { data, error, refetch } = useQuery(graphQuery(run, { open }));
  const graph = useMemo(
    () => (data ? counted(readGraph(data as GraphRecord), groups) : null),
    [data, groups],
  );
  const differs = useMemo(
    () => new Map(pairs.filter((pair) => pair.differs.length).map((pair) => [pair.id, pair])),
    [pairs],
  );
  const isDim = useCallback(
    (item: GraphItem) => (item.kind === "node" ? !differs.has(item.id) : !item.open && !groups[item.id]),
    [differs, groups],
  );
  const mark = useCallback(
    (item: GraphItem) =>
      item.kind === "node" ? markOf(differs.get(item.id)) : groups[item.id] ? MARKS.differs : MARKS.same,
    [differs, groups],
  );
  if (error) return <Failure error={error} retry={() => void refetch()} />;
  if (!graph) return <Loading />;
  return (
    <GraphView
      graph={graph}
      selected={selected}
      onSelect={onSelect}
      onToggle={(group) => {
        const next = open.includes(group) ? open.filter((each) => each !== group) : [...open, group];
        void navigate({ search: (now) => ({ ...now, open: next.length ? next : undefined }), replace: true });
      }}
      isDim={isDim}
      markOf={mark}
      noteOf={(node) => {
        const pair = differs.get(node.id);
        return pair ? briefly(pair) : MARKS.same.words;
      }}
      tools={<Legend />}
      label="Graph of the second run, with what differs"
    />
  );
}

function Legend() {
  return (
    <span
      role="img"
      aria-label="Legend"
      className="flex flex-wrap items-center gap-x-3 rounded-md bg-canvas px-1 text-xs text-ink-2"
    >
      {Object.values(MARKS).map(({ look, symbol, words }) => (
        <span key={look} data-status={look} className="inline-flex items-center gap-1">
          <span aria-hidden="true" className="font-semibold text-[var(--st)]">
            {symbol}
          </span>
          {words}
        </span>
      ))}
    </span>
  );
}

function counted(graph: Graph, groups: Record<string, number>): Graph {
  const items = graph.items.map((item) =>
    item.kind === "group" && groups[item.id]
      ? { ...item, name: `${item.name}: ${groups[item.id]!.toLocaleString()} differ` }
      : item,
  );
  return { ...graph, items, byId: new Map(items.map((item) => [item.id, item])) };
}

/** What the graph of the second run cannot show. */
export function OnlyInFirst({ pairs, onSelect }: { pairs: readonly Pair[]; onSelect: (id: string) => void }) {
  const missing = pairs.filter((pair) => pair.second === null);
  if (missing.length === 0) return null;
  const shown = missing.slice(0, SHOWN);
  return (
    <p className="flex flex-wrap items-center gap-x-2 gap-y-1 border-b border-line bg-paper px-4 py-2 text-[13px]">
      <span className="text-ink-2">Only in the first run:</span>
      {shown.map((pair) => (
        <button
          key={pair.id}
          type="button"
          className="max-w-60 truncate rounded bg-danger-soft px-1.5 py-px text-xs font-medium text-danger hover:underline"
          onClick={() => onSelect(pair.id)}
        >
          {pair.name}
        </button>
      ))}
      {missing.length > SHOWN && (
        <span className="text-ink-3">and {(missing.length - SHOWN).toLocaleString()} more, under Nodes</span>
      )}
    </p>
  );
}

const SHOWN = 12;
