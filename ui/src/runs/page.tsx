import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Filter as FilterIcon, GitCompareArrows } from "lucide-react";
import { useState } from "react";
import { Button, buttonClass } from "@/ui/button";
import { PageHead } from "@/ui/page";
import { type Column, Rows } from "@/ui/rows";
import { Empty, Failure, Loading } from "@/ui/states";
import { Status } from "@/ui/status";
import { Lasting, Time } from "@/ui/time";
import { Bulk } from "./bulk";
import type { Run } from "./changes";
import { asked, type Filter } from "./filter";
import { FilterBar } from "./filter-bar";
import { NodesBar } from "./nodes-bar";
import { useRuns } from "./use-runs";
import { SavedViews } from "./views";

export function RunsPage() {
  const filter = useSearch({ from: "/runs" });
  const navigate = useNavigate({ from: "/runs" });
  const change = (part: Partial<Filter>) =>
    void navigate({ search: (now) => asked({ ...now, ...part }), replace: true });
  const [ticked, setTicked] = useState<string[]>([]);
  const listed = useRuns(filter);
  const rows = listed.runs ?? [];
  const tick = (id: string) =>
    setTicked((now) => (now.includes(id) ? now.filter((each) => each !== id) : [...now, id].slice(-2)));
  const isFiltered = Object.keys(asked({ ...filter, order: undefined })).length > 0;

  return (
    <>
      <PageHead title="Runs">
        {ticked.length === 2 && (
          <Link
            to="/compare/$runId/$otherId"
            params={{ runId: ticked[0]!, otherId: ticked[1]! }}
            className={buttonClass("primary", true)}
          >
            <GitCompareArrows size={14} /> Compare these two
          </Link>
        )}
        <SavedViews filter={filter} onChoose={(view) => void navigate({ search: view })} />
        <Bulk filter={filter} />
      </PageHead>
      <FilterBar filter={filter} change={change} />
      {listed.error && <Failure error={listed.error} retry={listed.retry} />}
      {!listed.runs || listed.isSearching ? (
        !listed.error && <Loading rows={10} label={listed.isSearching ? "Searching older runs" : undefined} />
      ) : rows.length === 0 ? (
        <NoRuns isFiltered={isFiltered} clear={() => void navigate({ search: {} })} />
      ) : (
        <Rows
          rows={rows}
          columns={columns(ticked, tick)}
          keyOf={(run) => run.id}
          label="Runs"
          height={44}
          onOpen={(run) => void navigate({ to: "/runs/$runId", params: { runId: run.id }, search: {} })}
          onTick={(run) => tick(run.id)}
          onEnd={listed.fetchMore}
          footer={
            <p className="px-4 py-3 text-xs text-ink-3">
              {listed.isFetchingMore
                ? "Loading more…"
                : listed.hasMore
                  ? `${rows.length.toLocaleString()} shown, there are more`
                  : `${rows.length.toLocaleString()} ${rows.length === 1 ? "run" : "runs"}, all of them`}
            </p>
          }
        />
      )}
    </>
  );
}

const columns = (ticked: string[], tick: (id: string) => void): Column<Run>[] => [
  {
    name: "",
    width: "1.1rem",
    wideOnly: true,
    cell: (run) => (
      <input
        type="checkbox"
        aria-label={`Tick ${run.id} to compare it`}
        checked={ticked.includes(run.id)}
        onChange={() => tick(run.id)}
        className="align-middle accent-[var(--accent)]"
      />
    ),
  },
  { name: "Status", width: "7.2rem", cell: (run) => <Status status={run.status} /> },
  {
    name: "Workflow",
    width: "minmax(0,1.4fr)",
    cell: (run) => (
      <>
        <Link to="/runs/$runId" params={{ runId: run.id }} className="font-medium hover:underline">
          {run.workflow}
        </Link>
        {run.error && (
          <span className="block truncate text-2xs leading-3.5 text-danger md:hidden">{run.error}</span>
        )}
      </>
    ),
  },
  {
    name: "Error",
    width: "minmax(0,0.9fr)",
    wideOnly: true,
    cell: (run) =>
      run.error && (
        <Link
          to="/runs"
          search={{ error: run.error }}
          title="All runs that failed with it"
          className="text-danger hover:underline"
        >
          {run.error}
        </Link>
      ),
  },
  {
    name: "Run",
    width: "minmax(0,1.2fr)",
    wideOnly: true,
    cell: (run) => (
      <span className="font-mono text-xs text-ink-2" title={run.id}>
        {run.id}
      </span>
    ),
  },
  {
    name: "Nodes",
    width: "minmax(4.5rem,0.8fr)",
    cell: (run) => (
      <span className="flex items-center gap-2">
        <NodesBar run={run} />
        <span className="hidden text-2xs text-ink-3 tabular lg:block">
          {(run.nodes_total - run.nodes_open).toLocaleString()}/{run.nodes_total.toLocaleString()}
        </span>
      </span>
    ),
  },
  {
    name: "Tags",
    width: "minmax(0,1fr)",
    wideOnly: true,
    cell: (run) =>
      Object.entries(run.tags).map(([name, value]) => (
        <span
          key={name}
          title={`${name}=${value}`}
          className="mr-1 inline-block max-w-28 truncate rounded bg-hover px-1.5 align-middle text-2xs text-ink-2"
        >
          {name}={value}
        </span>
      )),
  },
  {
    name: "Took",
    width: "6rem",
    align: "right",
    wideOnly: true,
    cell: (run) => <Lasting from={run.started_at} to={run.ended_at} />,
  },
  { name: "Created", width: "5.5rem", align: "right", cell: (run) => <Time at={run.created_at} /> },
];

function NoRuns({ isFiltered, clear }: { isFiltered: boolean; clear: () => void }) {
  if (isFiltered) {
    return (
      <Empty title="No run matches" icon={<FilterIcon size={24} strokeWidth={1.5} />}>
        <Button small onClick={clear}>
          Show all runs
        </Button>
      </Empty>
    );
  }
  return (
    <Empty title="No runs yet">
      Start one from{" "}
      <Link to="/workflows" className="text-accent underline">
        its workflow
      </Link>
      , from Python, or with <code className="font-mono text-xs">stepwell run</code>.
    </Empty>
  );
}
