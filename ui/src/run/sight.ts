/** What of a run is looked at: the node that is selected, and which groups of the graph are open. Both are in the address. */

import { useCallback, useEffect, useMemo } from "react";
import { type Graph, isInside, openGroups } from "@/graph/model";
import type { Sight } from "./data";
import { useRunSearch } from "./search";

const NONE: readonly string[] = [];

export function useSight(): Sight {
  const { search } = useRunSearch();
  const { open = NONE, show, seq } = search;
  return useMemo(() => ({ open, show, at: seq }), [open, show, seq]);
}

/** Selecting a node that is in a closed group has the server open the groups around it; closing a group deselects what is in it. */
export function useSelection(graph: Graph | null) {
  const { search, change } = useRunSearch();
  const { node: selected, show: shown } = search;
  // A link, and going back, may lead to such a node, too.
  useEffect(() => {
    if (selected && graph && shown !== selected && !graph.byId.has(selected)) change({ show: selected });
  }, [selected, shown, graph, change]);
  const select = useCallback(
    (node: string | null) => {
      const isHidden = node !== null && graph !== null && !graph.byId.has(node);
      change({
        node: node ?? undefined,
        attempt: undefined,
        line: undefined,
        // What was opened before stays open.
        ...(isHidden ? { show: node, open: optional(openGroups(graph)) } : {}),
      });
    },
    [graph, change],
  );
  const toggle = useCallback(
    (group: string) => {
      if (!graph) return;
      const opened = openGroups(graph);
      if (!opened.includes(group)) return change({ open: [...opened, group] });
      const isIn = (node: string | undefined) => {
        const item = node === undefined ? undefined : graph.byId.get(node);
        return item !== undefined && isInside(graph, item, group);
      };
      change({
        open: optional(opened.filter((each) => each !== group)),
        ...(isIn(shown) ? { show: undefined } : {}),
        ...(isIn(selected) ? { node: undefined } : {}),
      });
    },
    [graph, change, selected, shown],
  );
  return { select, toggle };
}

const optional = (groups: string[]) => (groups.length ? groups : undefined);
