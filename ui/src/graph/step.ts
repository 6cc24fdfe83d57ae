import { type Layout, type Place, turned } from "./layout";
import { type Graph, type GraphItem, neighbours } from "./model";

const TURNED: Record<string, string> = {
  ArrowDown: "ArrowRight",
  ArrowUp: "ArrowLeft",
  ArrowRight: "ArrowDown",
  ArrowLeft: "ArrowUp",
};

/** Where an arrow leads from an item: along the edges sideways, within the column up and down; or the other way round. */
export function step(
  graph: Graph,
  layout: Layout,
  item: GraphItem | undefined,
  key: string,
): GraphItem | undefined {
  if (!key.startsWith("Arrow")) return undefined;
  if (layout.isDown) return step(graph, { ...turned(layout), isDown: false }, item, TURNED[key]!);
  if (!item) return key === "ArrowRight" ? graph.items[0] : undefined;
  const here = layout.places.get(item.key);
  if (!here) return undefined;
  if (item.kind === "group" && item.open) return graph.items.find((each) => each.group === item.key);
  const far = (place: Place) => Math.abs(place.y - here.y) + Math.abs(place.x - here.x) / 1_000;
  const nearest = (keys: number[]) =>
    keys
      .filter((each) => layout.places.has(each))
      .sort((a, b) => far(layout.places.get(a)!) - far(layout.places.get(b)!))[0];
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const { before, after } = neighbours(graph, item.key);
    const next = nearest(key === "ArrowLeft" ? before : after);
    return next === undefined ? undefined : graph.byKey.get(next);
  }
  const column = graph.items.filter((each) => {
    const place = layout.places.get(each.key);
    if (!place || (each.kind === "group" && each.open) || Math.abs(place.x - here.x) >= 8) return false;
    return key === "ArrowUp" ? place.y < here.y : place.y > here.y;
  });
  const next = nearest(column.map((each) => each.key));
  return next === undefined ? undefined : graph.byKey.get(next);
}
