/** Lines that were read in parts, as one list by time, each once. */

import type { Schemas } from "@/api/client";

export type Line = Schemas["LineRecord"];

/** Which line this is, in an address too. */
export const keyOf = (line: Line) => `${line.attempt}.${line.index}.${line.node_id}`;

/** Some of `later` may be in `earlier`, and before lines of it: attempts log side by side. The same list if nothing is new. */
export function merged(earlier: Line[], later: Line[]): Line[] {
  const known = new Set(earlier.map(keyOf));
  const rest = later.filter((line) => !known.has(keyOf(line)));
  if (rest.length === 0) return earlier;
  const all = [...earlier, ...rest];
  if (earlier.length > 0 && rest[0]!.time < earlier.at(-1)!.time) {
    all.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
  }
  return all;
}
