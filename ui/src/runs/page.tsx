import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Filter as FilterIcon, GitCompareArrows, ListFilter, X } from "lucide-react";
import { useMemo, useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { useStream } from "@/api/live";
import { workflowsQuery } from "@/api/queries";
import { hasEnded, RUN_STATUSES } from "@/api/tables";
import { Button, buttonClass } from "@/ui/button";
import { SearchField, Select } from "@/ui/fields";
import { PageHead } from "@/ui/page";
import { type Column, Rows } from "@/ui/rows";
import { Empty, Failure, Loading } from "@/ui/states";
import { Status, StatusBar } from "@/ui/status";
import { Lasting, Time } from "@/ui/time";
import { Bulk } from "./bulk";
import { asked, type Filter, ORDERS } from "./filter";
import { SavedViews } from "./views";

export type Run = Schemas["RunRecord"];
/** A run as the stream of all runs sends it. */
type Change = Pick<
  Run,
  "id" | "workflow" | "status" | "reason" | "seq" | "nodes_total" | "nodes_open" | "nodes_failed" | "tags"
>;
type Pages = { pages: { items: Run[]; next: string | null }[]; pageParams: unknown[] };

const PAGE = 100;

export function RunsPage() {
  const filter = useSearch({ from: "/runs" });
  const navigate = useNavigate({ from: "/runs" });
  const change = (part: Partial<Filter>) =>
    void navigate({ search: (now) => asked({ ...now, ...part }), replace: true });
  const [ticked, setTicked] = useState<string[]>([]);
  const listed = useRuns(filter);
  const rows = listed.data?.pages.flatMap((page) => page.items) ?? [];
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
      {listed.isPending ? (
        <Loading rows={10} />
      ) : listed.isError && rows.length === 0 ? (
        <Failure error={listed.error} retry={() => void listed.refetch()} />
      ) : rows.length === 0 ? (
        <NoRuns isFiltered={isFiltered} clear={() => void navigate({ search: {} })} />
      ) : (
        <>
          {listed.isError && <Failure error={listed.error} retry={() => void listed.refetch()} />}
          <Rows
            rows={rows}
            columns={columns(ticked, tick)}
            keyOf={(run) => run.id}
            label="Runs"
            height={44}
            onOpen={(run) => void navigate({ to: "/runs/$runId", params: { runId: run.id }, search: {} })}
            onTick={(run) => tick(run.id)}
            onEnd={() => listed.hasNextPage && !listed.isFetching && void listed.fetchNextPage()}
            footer={
              <p className="px-4 py-3 text-xs text-ink-3">
                {listed.isFetchingNextPage
                  ? "More are on their way…"
                  : listed.hasNextPage
                    ? `${rows.length.toLocaleString()} shown, there are more`
                    : `${rows.length.toLocaleString()} ${rows.length === 1 ? "run" : "runs"}, all of them`}
              </p>
            }
          />
        </>
      )}
    </>
  );
}

function useRuns(filter: Filter) {
  const queries = useQueryClient();
  const key = ["runs", asked(filter)];
  const listed = useInfiniteQuery({
    queryKey: key,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      ask(
        api.GET("/api/v1/runs", {
          params: { query: { ...asked(filter), limit: PAGE, cursor: pageParam } },
          signal,
        }),
      ),
    getNextPageParam: (page) => page.next ?? undefined,
  });
  const isReady = listed.data !== undefined;
  useStream(isReady ? "/events" : null, ["run", "reset"], null, (events) => {
    const changed = new Map<string, Change>();
    for (const { kind, data } of events) {
      if (kind === "run") changed.set((data as Change).id, data as Change);
    }
    let unknown = events.some((event) => event.kind === "reset");
    const known = new Set<string>();
    queries.setQueryData<Pages>(key, (now) => {
      if (!now) return now;
      return {
        ...now,
        pages: now.pages.map((page) => {
          if (!page.items.some((run) => changed.has(run.id))) {
            for (const run of page.items) known.add(run.id);
            return page;
          }
          return {
            ...page,
            items: page.items.map((run) => {
              known.add(run.id);
              const change = changed.get(run.id);
              return change && change.seq >= run.seq ? { ...run, ...change } : run;
            }),
          };
        }),
      };
    });
    for (const [id, change] of changed) unknown ||= !known.has(id) || hasEnded(change.status);
    // A run that is new, or whose times are: the first page is asked anew, at most every two seconds.
    if (unknown) refreshSoon(() => void queries.invalidateQueries({ queryKey: ["runs"] }));
  });
  return listed;
}

let refreshAt = 0;
function refreshSoon(refresh: () => void) {
  const now = Date.now();
  if (refreshAt > now) return;
  refreshAt = now + 2_000;
  setTimeout(refresh, 2_000);
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
      <Link to="/runs/$runId" params={{ runId: run.id }} className="font-medium hover:underline">
        {run.workflow}
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
    cell: (run) => {
      const done = run.nodes_total - run.nodes_open - run.nodes_failed;
      return (
        <span className="flex items-center gap-2">
          <StatusBar counts={{ COMPLETED: done, FAILED: run.nodes_failed, PENDING: run.nodes_open }} />
          <span className="hidden text-2xs text-ink-3 tabular lg:block">
            {(run.nodes_total - run.nodes_open).toLocaleString()}/{run.nodes_total.toLocaleString()}
          </span>
        </span>
      );
    },
  },
  {
    name: "Tags",
    width: "minmax(0,1fr)",
    wideOnly: true,
    cell: (run) =>
      Object.entries(run.tags).map(([name, value]) => (
        <span key={name} className="mr-1 rounded bg-hover px-1.5 py-px text-2xs text-ink-2">
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

function FilterBar({ filter, change }: { filter: Filter; change: (part: Partial<Filter>) => void }) {
  const workflows = useQuery(workflowsQuery);
  const names = useMemo(() => workflows.data?.items.map((each) => each.name) ?? [], [workflows.data]);
  const [tag, setTag] = useState("");
  const addTag = () => {
    if (/^[^=]+=/.test(tag)) {
      change({ tag: [...(filter.tag ?? []), tag] });
      setTag("");
    }
  };
  const toggle = (status: (typeof RUN_STATUSES)[number]) => {
    const now = filter.status ?? [];
    const next = now.includes(status) ? now.filter((each) => each !== status) : [...now, status];
    change({ status: next.length ? next : undefined });
  };
  return (
    <div className="space-y-2 border-b border-line bg-paper px-4 pb-3">
      <div className="flex flex-wrap items-center gap-2">
        <SearchField
          value={filter.q ?? ""}
          onChange={(q) => change({ q: q || undefined })}
          placeholder="Search ids, workflows, tags, error types (not payloads)"
          label="Search runs"
        />
        <Select
          aria-label="Workflow"
          className="w-auto! max-w-48"
          value={filter.workflow ?? ""}
          onChange={(event) => change({ workflow: event.target.value || undefined })}
        >
          <option value="">Any workflow</option>
          {filter.workflow && !names.includes(filter.workflow) && <option>{filter.workflow}</option>}
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </Select>
        <input
          aria-label="Tag, as NAME=VALUE"
          value={tag}
          onChange={(event) => setTag(event.target.value)}
          onKeyDown={(event) => event.key === "Enter" && addTag()}
          onBlur={addTag}
          placeholder="tag=value"
          className="h-8 w-28 rounded-md border border-line-strong bg-raised px-2.5 text-[13px] placeholder:text-ink-3"
        />
        <Select
          aria-label="Order"
          className="w-auto!"
          value={filter.order ?? "created"}
          onChange={(event) =>
            change({
              order: event.target.value === "created" ? undefined : (event.target.value as Filter["order"]),
            })
          }
        >
          {ORDERS.map((order) => (
            <option key={order} value={order}>
              {
                { created: "Newest", started: "Last started", ended: "Last ended", duration: "Longest" }[
                  order
                ]
              }
            </option>
          ))}
        </Select>
      </div>
      <div className="flex flex-wrap items-center gap-1.5">
        <ListFilter size={14} className="text-ink-3" />
        {RUN_STATUSES.map((status) => {
          const on = filter.status?.includes(status) ?? false;
          return (
            <button
              key={status}
              type="button"
              aria-pressed={on}
              onClick={() => toggle(status)}
              className={
                on ? "rounded-full ring-2 ring-[var(--focus)]" : "rounded-full opacity-75 hover:opacity-100"
              }
            >
              <Status status={status} />
            </button>
          );
        })}
        {(filter.tag ?? []).map((each) => (
          <Chip
            key={each}
            text={each}
            drop={() => {
              const left = filter.tag?.filter((other) => other !== each);
              change({ tag: left?.length ? left : undefined });
            }}
          />
        ))}
        {filter.error && <Chip text={`error ${filter.error}`} drop={() => change({ error: undefined })} />}
        {filter.fork_of && (
          <Chip text={`fork of ${filter.fork_of}`} drop={() => change({ fork_of: undefined })} />
        )}
        {filter.since && <Chip text={`since ${filter.since}`} drop={() => change({ since: undefined })} />}
        {filter.until && <Chip text={`until ${filter.until}`} drop={() => change({ until: undefined })} />}
      </div>
    </div>
  );
}

function Chip({ text, drop }: { text: string; drop: () => void }) {
  return (
    <span className="inline-flex items-center gap-1 rounded-full bg-accent-soft py-px pr-1 pl-2 text-xs text-accent">
      <span className="max-w-60 truncate">{text}</span>
      <button
        type="button"
        aria-label={`Drop ${text}`}
        onClick={drop}
        className="rounded-full p-0.5 hover:bg-hover"
      >
        <X size={11} />
      </button>
    </span>
  );
}

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
