/** The order in which people look for names. */

const byName = new Intl.Collator("en", { numeric: true });

export const natural = (a: string, b: string) => byName.compare(a, b);

/** In the order they have, but names that differ by their numbers alone, as the parts of a fan, beside each other and by number. */
export function byStem<Row extends { name: string }>(rows: readonly Row[]): Row[] {
  const stems = new Map<string, Row[]>();
  for (const row of rows) {
    const stem = row.name.replace(/\d+/g, "#");
    const alike = stems.get(stem);
    if (alike) alike.push(row);
    else stems.set(stem, [row]);
  }
  return [...stems.values()].flatMap((alike) => alike.sort((a, b) => natural(a.name, b.name)));
}
