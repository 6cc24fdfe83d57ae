import { useEffect, useState } from "react";
import { api, ask, type Schemas } from "@/api/client";

export type Line = Schemas["LineRecord"];
export const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR"] as const;
export type Level = (typeof LEVELS)[number];
export type LineFilter = { node?: string; attempt?: number; level?: Level; q?: string };

const PAGE = 1_000;
const LOOK = 1_000;

/** The lines of a run: page after page, and then what is new, by asking for the last page again. */
export function useLines(run_id: string, filter: LineFilter, follow: boolean) {
  const [pages, setPages] = useState<Line[][]>([]);
  const [state, setState] = useState<"reading" | "read">("reading");
  const [error, setError] = useState<unknown>(null);
  const [tries, setTries] = useState(0);
  const { node, attempt, level, q } = filter;
  useEffect(() => {
    let timer = 0;
    const stop = new AbortController();
    const read: Line[][] = [];
    const go = async (cursor: string | undefined, at: number) => {
      try {
        const page = (await ask(
          api.GET("/api/v1/runs/{run_id}/logs", {
            params: { path: { run_id }, query: { node, attempt, level, q, cursor, limit: PAGE } },
            signal: stop.signal,
          }),
        )) as Schemas["PageOfLineRecord"];
        if (stop.signal.aborted) return;
        if (
          page.items.length !== read[at]?.length ||
          page.items.at(-1)?.message !== read[at]?.at(-1)?.message
        ) {
          read[at] = page.items;
          setPages([...read]);
        }
        setError(null);
        if (page.next) void go(page.next, at + 1);
        else {
          setState("read");
          if (follow) timer = window.setTimeout(() => void go(cursor, at), LOOK);
        }
      } catch (failure) {
        if (stop.signal.aborted) return;
        setError(failure);
        setState("read");
        if (follow) timer = window.setTimeout(() => void go(cursor, at), 3 * LOOK);
      }
    };
    setState("reading");
    void go(undefined, 0);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [run_id, node, attempt, level, q, follow, tries]);
  const lines = pages.flat();
  return {
    lines,
    error,
    isPending: state === "reading" && lines.length === 0,
    refetch: () => setTries(tries + 1),
  };
}
