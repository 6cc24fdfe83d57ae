import { useCallback, useEffect, useRef, useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { keyOf, type Line, merged } from "./merging";

export { keyOf, type Line };
export const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR"] as const;
export type Level = (typeof LEVELS)[number];
export type LineFilter = { node?: string; attempt?: number; level?: Level; q?: string };

const TAIL = 500;
const OLDER = 1_000;
const LOOK = 1_000;

type Page = Schemas["LinePage"];
/** What is known of a log: its end, from some line on. */
type Log = { lines: Line[]; before: string | null; since: string };

/**
 * The lines of a run, from its end: the last ones at once, older ones when `older` asks for them, and while the run is active and
 * `follow` is set what was stored since.
 */
export function useLines(run_id: string, filter: LineFilter, active: boolean, follow: boolean) {
  const [log, setLog] = useState<Log | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [tries, setTries] = useState(0);
  const { node, attempt, level, q } = filter;
  const read = useCallback(
    (place: { tail?: number; before?: string; since?: string; cursor?: string }, signal?: AbortSignal) =>
      ask(
        api.GET("/api/v1/runs/{run_id}/logs", {
          params: { path: { run_id }, query: { node, attempt, level, q, ...place, limit: OLDER } },
          signal,
        }),
      ) as Promise<Page>,
    [run_id, node, attempt, level, q],
  );

  // The end; again when one asks to try again.
  const current = useRef<AbortController>(null);
  useEffect(() => {
    const stop = new AbortController();
    current.current = stop;
    setLog(null);
    setError(null);
    read({ tail: TAIL }, stop.signal).then(
      (page) => setLog({ lines: page.items, before: page.before, since: page.since }),
      (failure) => stop.signal.aborted || setError(failure),
    );
    return () => stop.abort();
  }, [read, tries]);

  const isReading = useRef(false);
  const before = log?.before ?? null;
  const older = useCallback(async () => {
    const stop = current.current;
    if (before === null || isReading.current || !stop) return;
    isReading.current = true;
    try {
      const page = await read({ before }, stop.signal);
      setLog((now) => now && { ...now, lines: merged(page.items, now.lines), before: page.before });
    } catch (failure) {
      if (!stop.signal.aborted) setError(failure);
    } finally {
      isReading.current = false;
    }
  }, [before, read]);

  // What is new; and once more when the run has ended, since its last lines came with its end.
  const wasActive = useRef(active);
  wasActive.current ||= active;
  const since = useRef<string | null>(null);
  since.current = log?.since ?? null;
  const isRead = log !== null;
  useEffect(() => {
    if (!isRead || !follow || !wasActive.current) return;
    const stop = new AbortController();
    let timer = 0;
    const look = async () => {
      try {
        const from = since.current!;
        let page = await read({ since: from }, stop.signal);
        const known = page.since;
        const found = [...page.items];
        while (page.next) {
          page = await read({ since: from, cursor: page.next }, stop.signal);
          found.push(...page.items);
        }
        setLog((now) => now && { ...now, lines: merged(now.lines, found), since: known });
        setError(null);
      } catch (failure) {
        if (stop.signal.aborted) return;
        setError(failure);
      }
      if (active) timer = window.setTimeout(() => void look(), LOOK);
    };
    timer = window.setTimeout(() => void look(), active ? LOOK : 0);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [isRead, active, follow, read]);

  return {
    lines: log?.lines ?? NONE,
    hasOlder: before !== null,
    older,
    error,
    isPending: log === null,
    refetch: () => setTries(tries + 1),
  };
}

const NONE: Line[] = [];
