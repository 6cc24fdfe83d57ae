/** A list of runs kept up to date by the stream: what changed is changed in place, and only what is new is asked for. */

import type { Schemas } from "@/api/client";
import { type Filter, whichRuns } from "./filter";

export type Run = Schemas["RunRecord"];
export type Change = Schemas["RunChange"];
export type Page = { items: Run[]; next: string | null };

/** What the pages become, and whether the first page has to be asked again because runs belong there that are not listed. */
export type Outcome = { pages: Page[]; isIncomplete: boolean };

/** The stream has every run of the filter but for its statuses, so that it also says when a run no longer belongs to the list. */
export function withChanges(pages: Page[], changes: ReadonlyMap<string, Change>, filter: Filter): Outcome {
  const { status } = whichRuns(filter);
  const belongs = (run: Change) => !status || status.includes(run.status);
  const known = new Set<string>();
  const changed = pages.map((page) => {
    for (const run of page.items) known.add(run.id);
    if (!page.items.some((run) => changes.has(run.id))) return page;
    const items = page.items.map((run) => newer(run, changes.get(run.id))).filter(belongs);
    return { ...page, items };
  });
  const isOlder = olderThan(pages, filter);
  const isIncomplete = [...changes.values()].some(
    (run) => !known.has(run.id) && belongs(run) && !isOlder(run),
  );
  return { pages: changed, isIncomplete };
}

function newer(run: Run, change: Change | undefined): Run {
  if (!change || change.seq < run.seq) return run;
  const seconds =
    change.ended_at === null
      ? null
      : (Date.parse(change.ended_at) - Date.parse(change.started_at ?? change.created_at)) / 1_000;
  return { ...run, ...change, seconds };
}

/** Whether a run belongs to a page that is not loaded yet. In another order than the default one cannot say, so none does. */
function olderThan(pages: Page[], filter: Filter): (run: Change) => boolean {
  const last = pages.flatMap((page) => page.items).at(-1);
  const hasMore = pages.at(-1)?.next != null;
  if (!last || !hasMore || filter.order) return () => false;
  return (run) => run.created_at < last.created_at;
}

/** The list once its first page was asked again: what moved down follows it, and pages that are loaded stay. */
export function withFirstPage(pages: Page[], fresh: Page): Page[] {
  const [first, ...others] = pages;
  const listed = new Map(pages.flatMap((page) => page.items).map((run) => [run.id, run]));
  // What the stream said meanwhile is newer than the answer.
  const items = fresh.items.map((run) => newer(run, listed.get(run.id)));
  // Without a run in common there may be others between the two.
  if (!first || fresh.next === null || !items.some((run) => listed.has(run.id))) return [{ ...fresh, items }];
  const ids = new Set(items.map((run) => run.id));
  const end = items.at(-1);
  const isAfter = (run: Run) => !ids.has(run.id) && end !== undefined && run.created_at <= end.created_at;
  const moved = { items: first.items.filter(isAfter), next: first.next };
  const rest = [moved, ...others].map((page) => ({
    ...page,
    items: page.items.filter((run) => !ids.has(run.id)),
  }));
  return [{ items: [...items, ...rest[0]!.items], next: first.next }, ...rest.slice(1)];
}
