import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { ChartGantt, Info, List, ScrollText, Workflow } from "lucide-react";
import { useCallback, useEffect, useMemo } from "react";
import { conditionWords, reasonWords } from "@/api/reasons";
import type { NodeStatus } from "@/api/tables";
import type { Graph, GraphNode } from "@/graph/model";
import { GraphView } from "@/graph/view";
import { VIEWS } from "@/router";
import { useKeys } from "@/shell/keys";
import { Segments } from "@/ui/fields";
import { Empty, Failure, Loading } from "@/ui/states";
import { Lasting } from "@/ui/time";
import { attemptsQuery, type NodeTimes, timesByNode } from "./attempts";
import { useRun } from "./data";
import { type Counts, RunHead } from "./head";
import { LogsView } from "./logs";
import { Overview } from "./overview";
import { Panel } from "./panel";
import { ProgressBar, useProgress } from "./progress";
import { Scrubber } from "./scrubber";
import { useRunSearch } from "./search";
import { useSelection, useSight } from "./sight";
import { TableView } from "./table";
import { TimelineView } from "./timeline";
import { GraphTools, toNextFailure, useGraphTools } from "./tools";

/** A page for each run: nothing of the one before is shown as that of the next. */
export function RunPage() {
  const { runId } = useParams({ from: "/runs/$runId" });
  return <RunView key={runId} runId={runId} />;
}

function RunView({ runId }: { runId: string }) {
  const { search, change } = useRunSearch();
  const sight = useSight();
  const { run, graph, statuses, ...state } = useRun(runId, sight);
  const { select, toggle } = useSelection(graph);
  const view = search.view ?? "graph";
  const progress = useProgress(run, search.seq !== undefined);
  const isNoted = search.seq === undefined && view === "graph" && (run?.nodes_total ?? NOTED + 1) <= NOTED;
  const attempts = useQuery({ ...attemptsQuery(runId), enabled: isNoted });
  const times = useMemo(() => timesByNode(isNoted ? attempts.data : undefined), [isNoted, attempts.data]);
  const noteOf = useCallback(
    (node: GraphNode) => {
      if ((statuses.get(node.id) ?? node.status) === "SKIPPED")
        return node.reason ? reasonWords(node.reason) : "skipped";
      const reported = progress.get(node.id);
      if (reported) return <ProgressBar progress={reported} label={false} />;
      const time = times.get(node.id);
      if (time) return <NodeNote times={time} />;
      return node.condition && `if ${conditionWords(node.condition)}`;
    },
    [progress, times, statuses],
  );
  const tools = useGraphTools({ runId, graph, statuses, at: search.seq });
  useEffect(() => {
    document.title = run ? `${run.workflow} ${run.status.toLowerCase()} · Stepwell` : "Run · Stepwell";
  }, [run]);
  useKeys({
    ...Object.fromEntries(VIEWS.map((each, index) => [String(index + 1), () => change({ view: each })])),
    Escape: () => search.node && select(null),
    y: () => change({ tab: "why", node: search.node }),
    f: () => void toNextFailure(tools, search.node, select),
  });

  if (state.isGone) return <Gone runId={runId} wasThere={run !== undefined} />;
  if (!run) return state.error ? <Failure error={state.error} retry={state.retry} /> : <Loading rows={8} />;
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <RunHead
        run={run}
        past={search.seq === undefined || !graph ? null : { seq: search.seq, counts: countsOf(graph) }}
      />
      <div className="flex flex-wrap items-center gap-2 border-b border-line bg-paper px-4 pb-2.5">
        <Segments label="View" value={view} onChange={(next) => change({ view: next })} options={OPTIONS} />
        <Scrubber run={run} seq={search.seq} onChange={(seq) => change({ seq })} />
      </div>
      {state.error && <Failure error={state.error} retry={state.retry} className="my-2!" />}
      <div className="flex min-h-0 flex-1 flex-col lg:flex-row">
        <div className="relative flex min-h-72 min-w-0 flex-1 flex-col">
          {view === "graph" &&
            (tools.shown ? (
              <GraphView
                graph={tools.shown}
                statuses={statuses}
                selected={search.node ?? null}
                onSelect={select}
                onToggle={toggle}
                isDim={tools.isDim}
                path={tools.path}
                noteOf={noteOf}
                label={`Graph of ${run.workflow}`}
                tools={<GraphTools tools={tools} selected={search.node} onSelect={select} />}
              />
            ) : (
              <Loading />
            ))}
          {view === "timeline" && (
            <TimelineView
              run={run}
              graph={graph}
              isPast={search.seq !== undefined}
              selected={search.node ?? null}
              attempt={search.attempt}
              onSelect={select}
              onAttempt={(node, attempt) => {
                select(node);
                change({ tab: "attempts", attempt });
              }}
              onToggle={toggle}
            />
          )}
          {view === "table" && (
            <TableView
              run={run}
              at={search.seq}
              progress={progress}
              selected={search.node ?? null}
              onSelect={select}
            />
          )}
          {view === "logs" && <LogsView run={run} />}
          {view === "overview" && <Overview run={run} onSelect={select} />}
        </div>
        {search.node && (
          <Panel
            run={run}
            node={search.node}
            progress={progress.get(search.node)}
            past={search.seq === undefined ? null : { seq: search.seq, status: statusOf(graph, search.node) }}
            onClose={() => select(null)}
          />
        )}
      </div>
    </div>
  );
}

/** Of so many nodes the attempts are read with the graph; more than that are not read one by one. */
const NOTED = 500;

/** What its latest attempt failed with or how long it took, and which attempt it was. */
function NodeNote({ times: { started, ended, error, tries } }: { times: NodeTimes }) {
  return (
    <>
      {error ? <span className="text-danger">{error}</span> : <Lasting from={started} to={ended} />}
      {tries > 1 && ` · ${tries} tries`}
    </>
  );
}

const OPTIONS = [
  { value: "graph", label: "Graph", icon: <Workflow size={13} /> },
  { value: "timeline", label: "Timeline", icon: <ChartGantt size={13} /> },
  { value: "table", label: "Table", icon: <List size={13} /> },
  { value: "logs", label: "Logs", icon: <ScrollText size={13} /> },
  { value: "overview", label: "Overview", icon: <Info size={13} /> },
] as const;

/** Nodes by status; those of closed groups are counted by the server. */
function countsOf(graph: Graph): Counts {
  const counts: Counts = {};
  const add = (status: NodeStatus, count: number) => {
    counts[status] = (counts[status] ?? 0) + count;
  };
  for (const item of graph.items) {
    if (item.kind === "node") item.status && add(item.status, 1);
    else if (!item.open)
      for (const [status, count] of Object.entries(item.counts)) add(status as NodeStatus, count);
  }
  return counts;
}

const statusOf = (graph: Graph | null, node: string) => {
  const item = graph?.byId.get(node);
  return item?.kind === "node" ? item.status : null;
};

function Gone({ runId, wasThere }: { runId: string; wasThere: boolean }) {
  return (
    <Empty title={wasThere ? "This run was deleted" : "There is no such run"}>
      {wasThere ? "It was deleted while it was shown here." : "It may have been deleted."}{" "}
      <span className="font-mono text-xs">{runId}</span>
    </Empty>
  );
}
