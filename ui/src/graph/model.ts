/** A graph as the API gives it, in columns, made ready to be laid out and drawn. */

import type { Schemas } from "@/api/client";
import type { NodeStatus } from "@/api/tables";
import type { Input } from "./layout";

export type GraphRecord = Schemas["GraphRecord"];

export type GraphNode = {
  kind: "node";
  key: number;
  id: string;
  name: string;
  level: number;
  status: NodeStatus | null;
  /** Why it has this status, where that does not go without saying. */
  reason: string | null;
  /** What must hold for it to run. */
  condition: string | null;
  group: number | null;
};

export type GraphGroup = {
  kind: "group";
  key: number;
  id: string;
  name: string;
  level: number;
  size: number;
  counts: Partial<Record<NodeStatus, number>>;
  group: number | null;
  open: boolean;
};

export type GraphItem = GraphNode | GraphGroup;

export type Graph = {
  record: GraphRecord;
  items: GraphItem[];
  edges: [from: number, to: number][];
  byId: Map<string, GraphItem>;
  byKey: Map<number, GraphItem>;
  /** The same for graphs that are laid out alike. */
  topology: string;
  /** Whether items are left out. */
  isPart: boolean;
};

export function readGraph(record: GraphRecord): Graph {
  const { nodes, groups } = record;
  const first = nodes.ids.length;
  const groupKey = (place: number | null | undefined) => (place == null ? null : first + place);
  const items: GraphItem[] = nodes.ids.map((id, place) => ({
    kind: "node",
    key: place,
    id,
    name: nodes.names[place]!,
    level: nodes.levels[place]!,
    status: nodes.statuses[place] ?? null,
    reason: nodes.reasons[place] ?? null,
    condition: nodes.conditions[place] ?? null,
    group: groupKey(nodes.groups[place]),
  }));
  groups.ids.forEach((id, place) => {
    items.push({
      kind: "group",
      key: first + place,
      id,
      name: groups.names[place]!,
      level: groups.levels[place]!,
      size: groups.sizes[place]!,
      counts: groups.counts[place] ?? {},
      group: groupKey(groups.groups[place]),
      open: groups.is_open[place]!,
    });
  });
  const edges: [number, number][] = [];
  const { offsets, parents } = record.edges;
  for (const item of items) {
    for (let at = offsets[item.key]!; at < offsets[item.key + 1]!; at++) edges.push([parents[at]!, item.key]);
  }
  const opened = groups.ids.filter((_, place) => groups.is_open[place]);
  return {
    record,
    items,
    edges,
    ...indexed(items),
    topology: JSON.stringify([record.digest, opened]),
    isPart: false,
  };
}

const indexed = (items: GraphItem[]) => ({
  byId: new Map(items.map((item) => [item.id, item])),
  byKey: new Map(items.map((item) => [item.key, item])),
});

/** The graph without these items, and without the open groups of which nothing is left. */
export function without(graph: Graph, isHidden: (item: GraphItem) => boolean): Graph {
  const kept = new Set<number>();
  for (const item of graph.items) {
    if ((item.kind === "group" && item.open) || isHidden(item)) continue;
    for (let each: GraphItem | undefined = item; each && !kept.has(each.key); ) {
      kept.add(each.key);
      each = each.group === null ? undefined : graph.byKey.get(each.group);
    }
  }
  const items = graph.items.filter((item) => kept.has(item.key));
  const { byId, byKey } = indexed(items);
  return {
    ...graph,
    items,
    byId,
    byKey,
    edges: graph.edges.filter(([from, to]) => byKey.has(from) && byKey.has(to)),
    topology: JSON.stringify([graph.topology, [...byKey.keys()]]),
    isPart: true,
  };
}

export const openGroups = (graph: Graph) =>
  graph.items.filter((item) => item.kind === "group" && item.open).map((item) => item.id);

/** Whether an item is in a group, or in a group in it. */
export function isInside(graph: Graph, item: GraphItem, group: string): boolean {
  const parent = item.group === null ? undefined : graph.byKey.get(item.group);
  return parent !== undefined && (parent.id === group || isInside(graph, parent, group));
}

export function layoutInput(graph: Graph): Input {
  const { orders } = graph.record.nodes;
  return {
    edges: graph.edges,
    items: graph.items.map((item) => ({
      key: item.key,
      level: item.level,
      order: item.kind === "node" ? orders[item.key]! : Number.MAX_SAFE_INTEGER,
      group: item.group,
      open: item.kind === "group" && item.open,
    })),
  };
}

/** The ways into and out of an item, for the keys. */
export function neighbours(graph: Graph, key: number) {
  return {
    before: graph.edges.filter(([, to]) => to === key).map(([from]) => from),
    after: graph.edges.filter(([from]) => from === key).map(([, to]) => to),
  };
}
