import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { api, ask } from "@/api/client";
import { useStream } from "@/api/live";
import { type Change, type Page, withChanges, withFirstPage } from "./changes";
import { asked, type Filter, streamOf } from "./filter";

const PAGE = 100;
/** Milliseconds between two looks at the first page. */
const INTERVAL = 2_000;

type Pages = { pages: Page[]; pageParams: unknown[] };

/** The runs of a filter, page by page, and live. */
export function useRuns(filter: Filter) {
  const queries = useQueryClient();
  const key = ["runs", "list", asked(filter)];
  const read = (cursor: string | undefined, signal?: AbortSignal) =>
    ask(api.GET("/api/v1/runs", { params: { query: { ...asked(filter), limit: PAGE, cursor } }, signal }));
  const listed = useInfiniteQuery({
    queryKey: key,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    getNextPageParam: (page) => page.next ?? undefined,
  });
  const hash = JSON.stringify(key);
  // Kept here: what the stream changes makes the query forget that its last request was refused.
  const [refusal, setRefusal] = useState<{ of: string; error: Error } | null>(null);
  const refused = refusal?.of === hash ? refusal.error : null;
  const fetchMore = () => {
    setRefusal(null);
    void listed.fetchNextPage().then(({ isFetchNextPageError, error }) => {
      if (isFetchNextPageError && error) setRefusal({ of: hash, error });
    });
  };
  const refresh = useThrottled(hash, () => {
    // In another order a new run may belong to any page.
    if (filter.order) return queries.invalidateQueries({ queryKey: key });
    return read(undefined).then(
      (fresh) =>
        queries.setQueryData<Pages>(key, (now) => {
          if (!now) return now;
          const pages = withFirstPage(now.pages, fresh);
          return { pages, pageParams: now.pageParams.slice(0, pages.length) };
        }),
      () => queries.invalidateQueries({ queryKey: key }), // the list shows the error
    );
  });
  useStream(listed.data ? streamOf(filter) : null, ["run", "reset"], null, (events) => {
    if (events.some((event) => event.kind === "reset")) {
      void queries.invalidateQueries({ queryKey: key });
      return;
    }
    const changes = new Map(events.map(({ data }) => [(data as Change).id, data as Change]));
    const now = queries.getQueryData<Pages>(key);
    if (!now) return;
    const { pages, isIncomplete } = withChanges(now.pages, changes, filter);
    if (pages.some((page, index) => page !== now.pages[index]))
      queries.setQueryData<Pages>(key, { ...now, pages });
    if (isIncomplete) refresh();
  });
  const error = refused ?? listed.error;
  const runs = listed.data?.pages.flatMap((page) => page.items);
  const canFetchMore = listed.hasNextPage && !listed.isFetching && !error;
  // A page of a search may be empty although older runs match.
  const isSearching = runs?.length === 0 && listed.hasNextPage;
  useEffect(() => {
    if (isSearching && canFetchMore) fetchMore();
  });
  return {
    runs,
    isSearching,
    error,
    retry: () => (refused ? fetchMore() : void listed.refetch()),
    hasMore: listed.hasNextPage,
    isFetchingMore: listed.isFetchingNextPage,
    /** Undefined as long as nothing more can be asked for. */
    fetchMore: canFetchMore ? fetchMore : undefined,
  };
}

/** At most one call in each interval, the last one included; none for a list that is no longer shown. */
function useThrottled(of: string, action: () => Promise<unknown>) {
  const latest = useRef(action);
  latest.current = action;
  const timer = useRef(0);
  // Another list, another timer.
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = 0;
    },
    [of],
  );
  return () => {
    timer.current ||= window.setTimeout(() => {
      timer.current = 0;
      void latest.current();
    }, INTERVAL);
  };
}
