import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { NODE_STATUSES, type NodeStatus, words } from "@/api/tables";
import { Select } from "@/ui/fields";
import { type Column, Rows } from "@/ui/rows";
import { Empty, Failure, Loading } from "@/ui/states";
import { Status } from "@/ui/status";
import { Time } from "@/ui/time";
import type { RunDetail } from "./data";
import { ProgressBar, type ProgressByNode } from "./progress";
import { useRunSearch } from "./search";

type NodeRow = Schemas["NodeRecord"];

const columnsOf = (progress: ProgressByNode): Column<NodeRow>[] => [
  { name: "Status", width: "8.5rem", cell: (node) => <Status status={node.status} /> },
  { name: "Node", width: "minmax(0,2fr)", cell: (node) => <span className="font-medium">{node.name}</span> },
  {
    name: "Id",
    width: "minmax(0,1fr)",
    wideOnly: true,
    cell: (node) => <span className="font-mono text-xs text-ink-2">{node.id}</span>,
  },
  {
    name: "Why",
    width: "minmax(0,1fr)",
    wideOnly: true,
    cell: (node) => {
      const reported = node.status === "RUNNING" ? progress.get(node.id) : undefined;
      if (reported) return <ProgressBar progress={reported} />;
      return <span className="text-ink-2">{node.reason ? words(node.reason) : ""}</span>;
    },
  },
  {
    name: "Queue",
    width: "6rem",
    wideOnly: true,
    cell: (node) => <span className="text-ink-2">{node.queue}</span>,
  },
  {
    name: "Due",
    width: "5rem",
    wideOnly: true,
    align: "right",
    cell: (node) => (node.due_at ? <Time at={node.due_at} /> : ""),
  },
  { name: "Tries", width: "3.5rem", align: "right", cell: (node) => node.attempts.toLocaleString() },
];

type Props = {
  run: RunDetail;
  /** The entry of the journal that is looked at; undefined: now. */
  at: number | undefined;
  progress: ProgressByNode;
  selected: string | null;
  onSelect: (node: string) => void;
};

/** The nodes as a table, in the order of the graph. */
export function TableView({ run, at, progress, selected, onSelect }: Props) {
  const { search, change } = useRunSearch();
  const status = NODE_STATUSES.find((each) => each === search.status);
  const listed = useInfiniteQuery({
    queryKey: ["nodes", run.id, "listed", status, at],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      ask(
        api.GET("/api/v1/runs/{run_id}/nodes", {
          params: {
            path: { run_id: run.id },
            query: { cursor: pageParam, limit: 500, status: status ? [status] : undefined, at },
          },
          signal,
        }),
      ),
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: keepPreviousData,
  });
  const columns = useMemo(() => columnsOf(progress), [progress]);
  // How many there were then is not known before all are read.
  const countOf = (each: NodeStatus) =>
    at === undefined ? ` (${(run.counts[each] ?? 0).toLocaleString()})` : "";
  const rows = listed.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <>
      <div className="flex items-center gap-2 border-b border-line bg-paper px-4 py-2">
        <Select
          aria-label="Status"
          className="w-auto!"
          value={status ?? ""}
          onChange={(event) => change({ status: event.target.value || undefined })}
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
        {at !== undefined && (
          <span className="text-xs text-ink-2">as they were after entry {at.toLocaleString()}</span>
        )}
      </div>
      {listed.isError && rows.length > 0 && (
        <Failure error={listed.error} retry={() => void listed.refetch()} className="my-2! shrink-0" />
      )}
      {listed.isPending ? (
        <Loading />
      ) : listed.isError && rows.length === 0 ? (
        <Failure error={listed.error} retry={() => void listed.refetch()} />
      ) : rows.length === 0 ? (
        <Empty title={status ? `No node is ${words(status)}` : "No nodes"} />
      ) : (
        <Rows
          rows={rows}
          columns={columns}
          keyOf={(node) => node.id}
          label="Nodes"
          height={36}
          selected={selected}
          onOpen={(node) => onSelect(node.id)}
          onEnd={() => listed.hasNextPage && !listed.isFetching && void listed.fetchNextPage()}
        />
      )}
    </>
  );
}
