import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, ask, type Schemas } from "@/api/client";

export type Pair = Schemas["PairRecord"];
export type Change = Schemas["ChangeRecord"];

/** Two runs and their nodes: at once those that differ, which come first; the others as they are asked for, or all of them. */
export function useComparison(run_id: string, other: string, { all }: { all: boolean }) {
  const asked = useInfiniteQuery({
    queryKey: ["diff", run_id, other],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      ask(
        api.GET("/api/v1/runs/{run_id}/diff/{other}", {
          params: { path: { run_id, other }, query: { cursor: pageParam, limit: 1_000 } },
          signal,
        }),
      ),
    getNextPageParam: (page) => page.next ?? undefined,
    // Each page compares the runs anew: when the tab is looked at again, nothing is.
    refetchOnWindowFocus: false,
  });
  const first = asked.data?.pages[0];
  const nodes = asked.data?.pages.flatMap((page) => page.nodes) ?? [];
  const { hasNextPage, isFetching, isError, fetchNextPage } = asked;
  const needsMore = first !== undefined && (all || nodes.length < first.different);
  const canGoOn = hasNextPage && !isFetching && !isError;
  useEffect(() => {
    if (needsMore && canGoOn) void fetchNextPage();
  }, [needsMore, canGoOn, fetchNextPage]);
  return {
    comparison: first,
    nodes,
    /** The first node, in the order of the graph, that differs: where the runs part. */
    parting: nodes.find((pair) => pair.differs.length > 0) ?? null,
    error: asked.error,
    retry: () => void (asked.isFetchNextPageError ? fetchNextPage() : asked.refetch()),
    fetchMore: canGoOn ? () => void fetchNextPage() : undefined,
  };
}
