import type { Graph } from "@/graph/model";
import type { Attempts } from "./attempts";

/**
 * The edges of the critical path: from what ended last, back over the parent that each waited for. Groups stand for what is in them.
 */
export function criticalPath(graph: Graph, attempts: Attempts): Set<string> {
  const ended = new Map<number, number>();
  const keyOf = new Map<string, number>();
  for (const item of graph.items) keyOf.set(item.id, item.key);
  for (const attempt of attempts.all) {
    const key = keyOf.get(attempt.node) ?? (attempt.group === null ? undefined : keyOf.get(attempt.group));
    if (key === undefined) continue;
    ended.set(key, Math.max(ended.get(key) ?? 0, attempt.ended ?? Number.MAX_SAFE_INTEGER));
  }
  const parents = new Map<number, number[]>();
  for (const [from, to] of graph.edges) {
    const known = parents.get(to);
    if (known) known.push(from);
    else parents.set(to, [from]);
  }
  const latest = (keys: Iterable<number>) => {
    let best: number | undefined;
    for (const key of keys) {
      if (ended.has(key) && (best === undefined || ended.get(key)! > ended.get(best)!)) best = key;
    }
    return best;
  };
  const path = new Set<string>();
  let key = latest(ended.keys());
  for (let hops = 0; key !== undefined && hops < graph.items.length; hops++) {
    const parent = latest(parents.get(key) ?? []);
    if (parent !== undefined) path.add(`${parent} ${key}`);
    key = parent;
  }
  return path;
}
