import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { ChartGantt, Info, List, ScrollText, Workflow } from "lucide-react";
import { useCallback, useEffect, useMemo } from "react";
import { ApiError } from "@/api/client";
import { GraphView } from "@/graph/view";
import { VIEWS } from "@/router";
import { useKeys } from "@/shell/keys";
import { Segments } from "@/ui/fields";
import { Empty, Failure, Loading } from "@/ui/states";
import { useRun } from "./data";
import { RunHead } from "./head";
import { LogsView } from "./logs";
import { Overview } from "./overview";
import { Panel } from "./panel";
import { Scrubber } from "./scrubber";
import { TableView } from "./table";
import { TimelineView } from "./timeline";
import { GraphTools, useGraphTools } from "./tools";

export type RunSearch = ReturnType<typeof useRunSearch>["search"];

/** What the address keeps, and a way to change a part of it. */
export function useRunSearch() {
  const search = useSearch({ from: "/runs/$runId" });
  const navigate = useNavigate({ from: "/runs/$runId" });
  const change = useCallback(
    (part: Partial<typeof search>) =>
      void navigate({
        search: (now) =>
          Object.fromEntries(Object.entries({ ...now, ...part }).filter(([, value]) => value !== undefined)),
        replace: !("node" in part || "view" in part),
      }),
    [navigate],
  );
  return { search, change };
}

export function RunPage() {
  const { runId } = useParams({ from: "/runs/$runId" });
  const { search, change } = useRunSearch();
  const open = useMemo(() => (search.open ? search.open.split(",") : []), [search.open]);
  const state = useRun(runId, open, search.seq);
  const { run, graph, statuses } = state;
  const view = search.view ?? "graph";
  const tools = useGraphTools(runId, graph, statuses);
  useEffect(() => {
    document.title = run ? `${run.workflow} ${run.status.toLowerCase()} · Stepwell` : "Run · Stepwell";
  }, [run]);
  const select = useCallback(
    (node: string | null) => change({ node: node ?? undefined, attempt: undefined, line: undefined }),
    [change],
  );
  const toggle = useCallback(
    (group: string) => {
      const next = open.includes(group) ? open.filter((each) => each !== group) : [...open, group];
      change({ open: next.length ? next.join(",") : undefined });
    },
    [open, change],
  );
  useKeys({
    ...Object.fromEntries(VIEWS.map((each, index) => [String(index + 1), () => change({ view: each })])),
    Escape: () => search.node && select(null),
    y: () => change({ tab: "why", node: search.node }),
    f: () => {
      const next = tools.nextFailure(search.node);
      if (next) select(next);
    },
  });

  if (state.error instanceof ApiError && state.error.status === 404) {
    return (
      <Empty title="There is no such run">
        It may have been deleted. <span className="font-mono text-xs">{runId}</span>
      </Empty>
    );
  }
  if (!run) return state.error ? <Failure error={state.error} retry={state.retry} /> : <Loading rows={8} />;
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <RunHead run={run} />
      <div className="flex flex-wrap items-center gap-2 border-b border-line bg-paper px-4 pb-2.5">
        <Segments
          label="View"
          value={view}
          onChange={(next) => change({ view: next })}
          options={[
            { value: "graph", label: "Graph", icon: <Workflow size={13} /> },
            { value: "timeline", label: "Timeline", icon: <ChartGantt size={13} /> },
            { value: "table", label: "Table", icon: <List size={13} /> },
            { value: "logs", label: "Logs", icon: <ScrollText size={13} /> },
            { value: "overview", label: "Overview", icon: <Info size={13} /> },
          ]}
        />
        <Scrubber run={run} seq={search.seq} onChange={(seq) => change({ seq })} />
      </div>
      {state.error && <Failure error={state.error} retry={state.retry} className="my-2!" />}
      <div className="flex min-h-0 flex-1 flex-col lg:flex-row">
        <div className="relative flex min-h-72 min-w-0 flex-1 flex-col">
          {view === "graph" &&
            (graph ? (
              <GraphView
                graph={graph}
                statuses={statuses}
                selected={search.node ?? null}
                onSelect={select}
                onToggle={toggle}
                isDim={tools.isDim}
                path={tools.path}
                label={`Graph of ${run.workflow}`}
                tools={<GraphTools tools={tools} onSelect={select} />}
              />
            ) : (
              <Loading />
            ))}
          {view === "timeline" && <TimelineView run={run} selected={search.node ?? null} onSelect={select} />}
          {view === "table" && <TableView run={run} selected={search.node ?? null} onSelect={select} />}
          {view === "logs" && <LogsView run={run} />}
          {view === "overview" && <Overview run={run} onSelect={select} />}
        </div>
        {search.node && <Panel run={run} node={search.node} onClose={() => select(null)} />}
      </div>
    </div>
  );
}
