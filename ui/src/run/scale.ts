/** The time axis of a run. Stretches in which nothing happened are drawn short, and say how long they were. */

import { duration } from "@/ui/time";

export type Span = { from: number; to: number };
export type Idle = Span & { x: number; w: number };
export type Scale = {
  x: (time: number) => number;
  width: number;
  idle: Idle[];
  busy: number;
  start: number;
  total: number;
};
/** A mark on the axis: milliseconds since it begins. */
export type Tick = { time: number; x: number };

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
  return { x, width, idle, busy: working, start, total: end - start };
}

/** Milliseconds between marks that are easy to read. */
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000],
  ...[1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map((minutes) => minutes * 60_000),
  ...[1, 2, 7, 14, 28].map((days) => days * 86_400_000),
];
const TICK_ROOM = 74;

/** `0`, `50 ms`, `1.5 s`, `2 min`, `2 min 30 s`. */
export const tickText = (milliseconds: number) =>
  milliseconds === 0
    ? "0"
    : duration(milliseconds / 1_000)
        .replace(/ 00 (s|min)$/, "")
        .replace(/(\.\d*?)0+ s$/, "$1 s")
        .replace(". s", " s");

/** Marks of the axis, with room for their words: none in idle stretches, which say for themselves how long they are. */
export function ticksOf(scale: Scale): Tick[] {
  const busyWidth = Math.max(1, scale.width - scale.idle.length * IDLE_WIDTH);
  const drawn = scale.total - scale.idle.reduce((sum, gap) => sum + gap.to - gap.from, 0);
  const least = (TICK_ROOM * Math.max(1, drawn)) / busyWidth;
  const step = STEPS.find((each) => each >= least) ?? STEPS.at(-1)!;
  const ticks: Tick[] = [];
  const add = (time: number) => {
    const x = scale.x(scale.start + time);
    const isFree = x - (ticks.at(-1)?.x ?? Number.NEGATIVE_INFINITY) >= TICK_ROOM && x <= scale.width - 20;
    if (isFree && !scale.idle.some((gap) => x > gap.x && x < gap.x + gap.w + 4)) ticks.push({ time, x });
  };
  add(0);
  // From one stretch in which something happened to the next: those between them may be long.
  let from = 0;
  for (const gap of [...scale.idle, { from: scale.start + scale.total, to: scale.start + scale.total }]) {
    const to = gap.from - scale.start;
    for (let time = Math.ceil(from / step) * step; time <= to && ticks.length < 200; time += step) add(time);
    from = gap.to - scale.start;
  }
  return ticks;
}
