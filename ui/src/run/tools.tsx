import { useQuery } from "@tanstack/react-query";
import { EyeOff, OctagonX, Route } from "lucide-react";
import { useCallback, useMemo } from "react";
import { api, ask } from "@/api/client";
import { isBroken, NODE_STATUSES, type NodeStatus } from "@/api/tables";
import { type Graph, type GraphItem, without } from "@/graph/model";
import { Button } from "@/ui/button";
import { SearchField } from "@/ui/fields";
import { notify } from "@/ui/overlays";
import { attemptsQuery } from "./attempts";
import { criticalPath } from "./critical";
import { natural } from "./natural";
import { useRunSearch } from "./search";

const NOTHING: ReadonlySet<string> = new Set();
const BROKEN = NODE_STATUSES.filter(isBroken);
const DONE: readonly NodeStatus[] = ["COMPLETED", "SKIPPED"];
/** Nodes that are stepped through: those that a search matches, or those that failed. */
const STEPS = 1_000;

type Sight = { runId: string; graph: Graph | null; statuses: ReadonlyMap<string, NodeStatus>; at?: number };

/** What is shown of the graph beside its statuses: a search, without what succeeded, the critical path, what failed. */
export function useGraphTools({ runId, graph, statuses, at }: Sight) {
  const { search, change } = useRunSearch();
  const { find: q = "", hide: hidesDone = false, path: showsPath = false } = search;
  const attempts = useQuery({ ...attemptsQuery(runId), enabled: showsPath });
  const path = useMemo(
    () => (showsPath && graph && attempts.data ? criticalPath(graph, attempts.data) : NOTHING),
    [showsPath, graph, attempts.data],
  );
  const statusOf = useCallback(
    (item: GraphItem) => (item.kind === "node" ? (statuses.get(item.id) ?? item.status) : null),
    [statuses],
  );
  const shown = useMemo(() => {
    if (!graph || !hidesDone) return graph;
    return without(graph, (item) =>
      item.kind === "node"
        ? DONE.includes(statusOf(item)!)
        : DONE.reduce((sum, each) => sum + (item.counts[each] ?? 0), 0) === item.size,
    );
  }, [graph, hidesDone, statusOf]);
  const failures = useMemo(() => {
    let count = 0;
    for (const item of graph?.items ?? []) {
      if (item.kind === "node") count += BROKEN.includes(statusOf(item)!) ? 1 : 0;
      else if (!item.open) for (const each of BROKEN) count += item.counts[each] ?? 0;
    }
    return count;
  }, [graph, statusOf]);
  const matches = useQuery({
    queryKey: ["nodes", runId, "matching", q, at],
    queryFn: ({ signal }) => nodeIds(runId, { q, at }, signal),
    enabled: q !== "",
  });
  const found = q === "" ? undefined : matches.data;
  const isDim = useCallback(
    (item: GraphItem) => found !== undefined && item.kind === "node" && !found.includes(item.id),
    [found],
  );
  /** The node that failed after this one, in groups that are closed, too. */
  const nextFailure = async (from: string | undefined) =>
    after(await nodeIds(runId, { status: BROKEN, at }), from);
  return {
    q,
    setQ: (next: string) => change({ find: next || undefined }),
    hidesDone,
    setHidesDone: (next: boolean) => change({ hide: next || undefined }),
    showsPath,
    setShowsPath: (next: boolean) => change({ path: next || undefined }),
    path,
    shown,
    isDim,
    failures,
    nextFailure,
    matches: found,
    nextMatch: (from: string | undefined) => after(found ?? [], from),
  };
}

type NodeFilter = { q?: string; status?: NodeStatus[]; at?: number };

async function nodeIds(run_id: string, filter: NodeFilter, signal?: AbortSignal): Promise<string[]> {
  const page = await ask(
    api.GET("/api/v1/runs/{run_id}/nodes", {
      params: { path: { run_id }, query: { ...filter, limit: STEPS } },
      signal,
    }),
  );
  return page.items.sort((a, b) => natural(a.name, b.name)).map((node) => node.id);
}

const after = (ids: readonly string[], from: string | undefined): string | undefined =>
  ids[(from === undefined ? 0 : ids.indexOf(from) + 1) % Math.max(1, ids.length)];

type Props = {
  tools: ReturnType<typeof useGraphTools>;
  selected: string | undefined;
  onSelect: (node: string) => void;
};

export function GraphTools({ tools, selected, onSelect }: Props) {
  return (
    <>
      <span
        className="flex w-52 max-w-[60vw] rounded-md shadow-sm"
        onPointerDown={(event) => event.stopPropagation()}
      >
        <SearchField value={tools.q} onChange={tools.setQ} placeholder="Find a node" />
      </span>
      {tools.matches && (
        <Button
          small
          title="The next one that matches"
          onClick={() => {
            const next = tools.nextMatch(selected);
            if (next) onSelect(next);
          }}
          disabled={tools.matches.length === 0}
        >
          {tools.matches.length === STEPS ? "≥ " : ""}
          {tools.matches.length === 1 ? "1 match" : `${tools.matches.length.toLocaleString()} matches`}
        </Button>
      )}
      <Button
        small
        look={tools.hidesDone ? "primary" : "plain"}
        aria-pressed={tools.hidesDone}
        icon={<EyeOff size={13} />}
        onClick={() => tools.setHidesDone(!tools.hidesDone)}
      >
        Hide what succeeded
      </Button>
      <Button
        small
        look={tools.showsPath ? "primary" : "plain"}
        aria-pressed={tools.showsPath}
        icon={<Route size={13} />}
        onClick={() => tools.setShowsPath(!tools.showsPath)}
      >
        Critical path
      </Button>
      {tools.failures > 0 && (
        <Button
          small
          look="danger"
          icon={<OctagonX size={13} />}
          title="The next failure (f)"
          onClick={() => void toNextFailure(tools, selected, onSelect)}
        >
          {tools.failures.toLocaleString()} failed
        </Button>
      )}
    </>
  );
}

/** Select the next node that failed; what is wrong is said where one looks. */
export const toNextFailure = (
  tools: Pick<Props["tools"], "nextFailure">,
  selected: string | undefined,
  onSelect: (node: string) => void,
) =>
  tools.nextFailure(selected).then(
    (next) => next !== undefined && onSelect(next),
    (error: Error) => notify(error.message, { bad: true }),
  );
