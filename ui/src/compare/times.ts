import type { Pair } from "./data";

/** By how many seconds the second run took longer for a node; null where one of the two has no time. */
export const secondsMore = (pair: Pair): number | null =>
  pair.first?.seconds == null || pair.second?.seconds == null
    ? null
    : pair.second.seconds - pair.first.seconds;

const changeOf = (pair: Pair) => {
  const more = secondsMore(pair);
  return more === null ? -1 : Math.abs(more);
};

/** The nodes by what changed most in time, whether slower or faster; those without two times last. */
export const byTime = (pairs: readonly Pair[]): Pair[] =>
  [...pairs].sort((a, b) => changeOf(b) - changeOf(a));
