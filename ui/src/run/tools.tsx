import { useQuery } from "@tanstack/react-query";
import { EyeOff, OctagonX, Route } from "lucide-react";
import { useCallback, useMemo, useState } from "react";
import { isBroken, type NodeStatus } from "@/api/tables";
import type { Graph, GraphItem } from "@/graph/model";
import { Button } from "@/ui/button";
import { SearchField } from "@/ui/fields";
import { attemptsQuery } from "./attempts";
import { criticalPath } from "./critical";

const NOTHING: ReadonlySet<string> = new Set();

/** What is shown of the graph beside its statuses: a search, what succeeded hidden, the critical path. */
export function useGraphTools(runId: string, graph: Graph | null, statuses: ReadonlyMap<string, NodeStatus>) {
  const [q, setQ] = useState("");
  const [hideDone, setHideDone] = useState(false);
  const [showPath, setShowPath] = useState(false);
  const attempts = useQuery({ ...attemptsQuery(runId), enabled: showPath });
  const path = useMemo(
    () => (showPath && graph && attempts.data ? criticalPath(graph, attempts.data) : NOTHING),
    [showPath, graph, attempts.data],
  );
  const statusOf = useCallback(
    (item: GraphItem) => (item.kind === "node" ? (statuses.get(item.id) ?? item.status) : null),
    [statuses],
  );
  const isDim = useCallback(
    (item: GraphItem) => {
      if (q && !item.name.toLowerCase().includes(q.toLowerCase()) && !item.id.startsWith(q)) return true;
      if (!hideDone) return false;
      return item.kind === "node"
        ? ["COMPLETED", "SKIPPED"].includes(statusOf(item) ?? "")
        : (item.counts.COMPLETED ?? 0) === item.size;
    },
    [q, hideDone, statusOf],
  );
  const failures = useMemo(
    () =>
      (graph?.items ?? []).filter((item) => {
        if (item.kind === "group")
          return !item.open && (item.counts.FAILED ?? 0) + (item.counts.INTERRUPTED ?? 0) > 0;
        const status = statusOf(item);
        return status !== null && isBroken(status);
      }),
    [graph, statusOf],
  );
  /** The failure after this item. */
  const nextFailure = (from: string | undefined) => {
    const at = failures.findIndex((item) => item.id === from);
    return failures[(at + 1) % Math.max(1, failures.length)]?.id;
  };
  const matches = q ? (graph?.items ?? []).filter((item) => !isDim(item)) : [];
  return {
    q,
    setQ,
    hideDone,
    setHideDone,
    showPath,
    setShowPath,
    path,
    isDim,
    failures,
    nextFailure,
    matches,
  };
}

type Tools = ReturnType<typeof useGraphTools>;

export function GraphTools({ tools, onSelect }: { tools: Tools; onSelect: (id: string) => void }) {
  return (
    <>
      <span
        className="flex w-52 max-w-[60vw] rounded-md shadow-sm"
        onPointerDown={(event) => event.stopPropagation()}
      >
        <SearchField
          value={tools.q}
          onChange={(q) => {
            tools.setQ(q);
          }}
          placeholder="Find a node"
        />
      </span>
      {tools.q && (
        <Button
          small
          onClick={() => tools.matches[0] && onSelect(tools.matches[0].id)}
          disabled={!tools.matches.length}
        >
          {tools.matches.length.toLocaleString()} shown
        </Button>
      )}
      <Button
        small
        look={tools.hideDone ? "primary" : "plain"}
        aria-pressed={tools.hideDone}
        icon={<EyeOff size={13} />}
        onClick={() => tools.setHideDone(!tools.hideDone)}
      >
        Fade what succeeded
      </Button>
      <Button
        small
        look={tools.showPath ? "primary" : "plain"}
        aria-pressed={tools.showPath}
        icon={<Route size={13} />}
        onClick={() => tools.setShowPath(!tools.showPath)}
      >
        Critical path
      </Button>
      {tools.failures.length > 0 && (
        <Button
          small
          look="danger"
          icon={<OctagonX size={13} />}
          title="The next failure (f)"
          onClick={() => {
            const next = tools.nextFailure(undefined);
            if (next) onSelect(next);
          }}
        >
          {tools.failures.length.toLocaleString()} failed
        </Button>
      )}
    </>
  );
}
