/** Where the row is that the keys are at. */

type Chosen = { key: string; index: number };

/** By its key, so that rows that come in between move nothing; if it is gone, the row in its place. */
export function activeIndex<Row>(rows: readonly Row[], keyOf: (row: Row) => string, chosen: Chosen): number {
  const isThere = chosen.index < rows.length && keyOf(rows[chosen.index]!) === chosen.key;
  if (isThere) return chosen.index;
  const index = chosen.key ? rows.findIndex((row) => keyOf(row) === chosen.key) : -1;
  return index >= 0 ? index : Math.max(0, Math.min(chosen.index, rows.length - 1));
}
