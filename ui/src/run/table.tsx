import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import clsx from "clsx";
import { X } from "lucide-react";
import { useEffect, useMemo } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { reasonWords } from "@/api/reasons";
import { isBroken, NODE_STATUSES, type NodeStatus, words } from "@/api/tables";
import { Button } from "@/ui/button";
import { SearchField, Select } from "@/ui/fields";
import { type Column, Rows } from "@/ui/rows";
import { Empty, Failure, Loading } from "@/ui/states";
import { Status } from "@/ui/status";
import { Lasting, Time } from "@/ui/time";
import { attemptsQuery, type NodeTimes, timesByNode } from "./attempts";
import type { RunDetail } from "./data";
import { failuresQuery, messagesByNode } from "./failures";
import { byStem } from "./natural";
import { ProgressBar, type ProgressByNode } from "./progress";
import { useRunSearch } from "./search";

type NodeRow = Schemas["NodeRecord"];

const PAGE = 1_000;
/** So many nodes are read at once, and are in their natural order as a whole; of more, each page is. */
const AT_ONCE = 2_000;
const BROKEN = NODE_STATUSES.filter(isBroken);
const OTHERS = NODE_STATUSES.filter((each) => !isBroken(each));

type Known = {
  progress: ProgressByNode;
  times: ReadonlyMap<string, NodeTimes>;
  messages: ReadonlyMap<string, string>;
};

const columnsOf = ({ progress, times, messages }: Known): Column<NodeRow>[] => {
  /** What is wrong with it, or why it waits. */
  const note = (node: NodeRow) => {
    const type = isBroken(node.status) ? times.get(node.id)?.error : null;
    if (type) return [type, messages.get(node.id)].filter(Boolean).join(": ");
    return node.reason ? reasonWords(node.reason) : "";
  };
  const look = (node: NodeRow) => (isBroken(node.status) ? "text-danger" : "text-ink-2");
  return [
    { name: "Status", width: "8.5rem", cell: (node) => <Status status={node.status} /> },
    {
      name: "Node",
      width: "minmax(0,1.2fr)",
      cell: (node) => (
        <>
          <span className="block truncate font-medium" title={`${node.name} (${node.id})`}>
            {node.name}
          </span>
          <span className={clsx("block truncate text-2xs md:hidden", look(node))}>{note(node)}</span>
        </>
      ),
    },
    {
      name: "Error or reason",
      width: "minmax(0,2fr)",
      wideOnly: true,
      cell: (node) => {
        const reported = node.status === "RUNNING" ? progress.get(node.id) : undefined;
        if (reported) return <ProgressBar progress={reported} />;
        return (
          <span className={look(node)} title={note(node)}>
            {note(node)}
            {node.due_at && (
              <>
                {" "}
                · due <Time at={node.due_at} />
              </>
            )}
          </span>
        );
      },
    },
    {
      name: "Queue",
      width: "5.5rem",
      wideOnly: true,
      cell: (node) => <span className="text-ink-2">{node.queue}</span>,
    },
    {
      name: "Started",
      width: "5rem",
      wideOnly: true,
      align: "right",
      cell: (node) => <Time at={times.get(node.id)?.started} />,
    },
    {
      name: "Took",
      width: "4.5rem",
      align: "right",
      cell: (node) => {
        const time = node.status === "SKIPPED" ? undefined : times.get(node.id);
        return <Lasting from={time?.started} to={time?.ended} />;
      },
    },
    { name: "Tries", width: "3rem", align: "right", cell: (node) => node.attempts.toLocaleString() },
  ];
};

type Props = {
  run: RunDetail;
  /** The entry of the journal that is looked at; undefined: now. */
  at: number | undefined;
  progress: ProgressByNode;
  selected: string | null;
  onSelect: (node: string) => void;
};

/** The nodes as a table: what failed first, then the others in the order of the graph, parts of a fan by their numbers. */
export function TableView({ run, at, progress, selected, onSelect }: Props) {
  const { search, change } = useRunSearch();
  const status = NODE_STATUSES.find((each) => each === search.status);
  const { find, error } = search;
  const mayHaveFailed = at !== undefined || BROKEN.some((each) => run.counts[each]);
  const statuses = error ? BROKEN : status ? [status] : null;
  const first = statuses ?? (mayHaveFailed ? BROKEN : OTHERS);
  const listed = useInfiniteQuery({
    queryKey: ["nodes", run.id, "listed", statuses, find, at, mayHaveFailed],
    initialPageParam: { status: first, cursor: undefined as string | undefined },
    queryFn: ({ pageParam: { status, cursor }, signal }) =>
      ask(
        api.GET("/api/v1/runs/{run_id}/nodes", {
          params: { path: { run_id: run.id }, query: { cursor, limit: PAGE, status, q: find, at } },
          signal,
        }),
      ),
    getNextPageParam: (page, _, { status }) =>
      page.next
        ? { status, cursor: page.next }
        : statuses === null && status.includes("FAILED")
          ? { status: OTHERS, cursor: undefined }
          : undefined,
    placeholderData: keepPreviousData,
  });
  const attempts = useQuery({ ...attemptsQuery(run.id), enabled: at === undefined });
  const failures = useQuery({ ...failuresQuery(run.id), enabled: at === undefined && mayHaveFailed });
  const times = useMemo(() => timesByNode(at === undefined ? attempts.data : undefined), [attempts.data, at]);
  const messages = useMemo(() => messagesByNode(failures.data), [failures.data]);
  const columns = useMemo(() => columnsOf({ progress, times, messages }), [progress, times, messages]);
  const { hasNextPage, isFetching, fetchNextPage, isError } = listed;
  const isWhole = run.nodes_total <= AT_ONCE;
  const rows = useMemo(() => {
    const pages = listed.data?.pages.map((page) => page.items) ?? [];
    // What failed has pages of its own, before those of the others.
    const sorted = isWhole
      ? [...byStem(pages.flat().filter(isFailed)), ...byStem(pages.flat().filter((row) => !isFailed(row)))]
      : pages.flatMap(byStem);
    return error ? sorted.filter((row) => times.get(row.id)?.error === error) : sorted;
  }, [listed.data, isWhole, error, times]);
  // What comes with the second page would move what is seen, and what a filter leaves may be further on.
  const wantsMore = hasNextPage && !isFetching && !isError && (isWhole || (error && rows.length < 50));
  useEffect(() => {
    if (wantsMore) void fetchNextPage();
  }, [wantsMore, fetchNextPage]);
  // How many there were then is not known before all are read.
  const countOf = (each: NodeStatus) =>
    at === undefined ? ` (${(run.counts[each] ?? 0).toLocaleString()})` : "";
  return (
    <>
      <div className="flex flex-wrap items-center gap-2 border-b border-line bg-paper px-4 py-2">
        <SearchField
          value={find ?? ""}
          onChange={(next) => change({ find: next || undefined })}
          placeholder="Find a node"
        />
        <Select
          aria-label="Status"
          className="w-auto!"
          value={status ?? ""}
          onChange={(event) => change({ status: event.target.value || undefined, error: undefined })}
        >
          <option value="">Any status{at === undefined && ` (${run.nodes_total.toLocaleString()})`}</option>
          {NODE_STATUSES.filter((each) => at !== undefined || run.counts[each] || each === status).map(
            (each) => (
              <option key={each} value={each}>
                {words(each)}
                {countOf(each)}
              </option>
            ),
          )}
        </Select>
        {error && (
          <Button
            small
            look="danger"
            icon={<X size={13} />}
            title="Show all nodes again"
            onClick={() => change({ error: undefined })}
          >
            failed with {error}
          </Button>
        )}
        {at !== undefined && (
          <span className="text-xs text-ink-2">as they were after entry {at.toLocaleString()}</span>
        )}
      </div>
      {isError && rows.length > 0 && (
        <Failure error={listed.error} retry={() => void listed.refetch()} className="my-2! shrink-0" />
      )}
      {listed.isPending || (rows.length === 0 && hasNextPage && !isError) ? (
        <Loading />
      ) : isError && rows.length === 0 ? (
        <Failure error={listed.error} retry={() => void listed.refetch()} />
      ) : rows.length === 0 ? (
        <Empty
          title={find || error ? "No node matches" : status ? `No node is ${words(status)}` : "No nodes"}
        />
      ) : (
        <Rows
          rows={rows}
          columns={columns}
          keyOf={(node) => node.id}
          label="Nodes"
          height={40}
          selected={selected}
          onOpen={(node) => onSelect(node.id)}
          onEnd={() => hasNextPage && !isFetching && void fetchNextPage()}
        />
      )}
    </>
  );
}

const isFailed = (row: NodeRow) => isBroken(row.status);
