/** The time axis of a run. Stretches in which nothing happened are drawn short, and say how long they were. */

export type Span = { from: number; to: number };
export type Idle = Span & { x: number; w: number };
export type Scale = { x: (time: number) => number; width: number; idle: Idle[]; busy: number; total: number };

const IDLE_WIDTH = 28;
/** A stretch is idle if it is longer than this part of all the time in which something happened. */
const IDLE_PART = 0.12;

/** `since`: when the first of it was waited for, which is where the axis begins. */
export function scaleOf(
  spans: readonly Span[],
  width: number,
  compress: boolean,
  since = Number.POSITIVE_INFINITY,
): Scale {
  const sorted = [...spans].sort((a, b) => a.from - b.from);
  const busy: Span[] = [];
  for (const span of sorted) {
    const last = busy.at(-1);
    if (last && span.from <= last.to) last.to = Math.max(last.to, span.to);
    else busy.push({ ...span });
  }
  const start = Math.min(since, busy[0]?.from ?? 0);
  const end = busy.at(-1)?.to ?? 1;
  const working = busy.reduce((sum, span) => sum + span.to - span.from, 0);
  const idleSpans: Span[] = [];
  for (let index = 0; index < busy.length; index++) {
    const gap = { from: busy[index - 1]?.to ?? start, to: busy[index]!.from };
    if (compress && gap.to - gap.from > Math.max(working * IDLE_PART, 1)) idleSpans.push(gap);
  }
  // The longest ones, so that they take no more than a third of the axis.
  const gaps = idleSpans
    .sort((a, b) => b.to - b.from - (a.to - a.from))
    .slice(0, Math.floor(width / 3 / IDLE_WIDTH))
    .sort((a, b) => a.from - b.from);
  const left = gaps.reduce((sum, gap) => sum + gap.to - gap.from, 0);
  const room = Math.max(1, width - gaps.length * IDLE_WIDTH);
  const factor = room / Math.max(1, end - start - left);
  const idle: Idle[] = [];
  let before = 0;
  for (const gap of gaps) {
    idle.push({ ...gap, x: (gap.from - start - before) * factor + idle.length * IDLE_WIDTH, w: IDLE_WIDTH });
    before += gap.to - gap.from;
  }
  const x = (time: number) => {
    let at = (time - start) * factor;
    for (const gap of idle) {
      if (time >= gap.to) at += IDLE_WIDTH - (gap.to - gap.from) * factor;
      else if (time > gap.from) return gap.x + (IDLE_WIDTH * (time - gap.from)) / (gap.to - gap.from);
      else break;
    }
    return at;
  };
  return { x, width, idle, busy: working, total: end - start };
}
