import { useEffect, useState } from "react";
import { pace } from "@/api/pace";

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });
const exact = new Intl.DateTimeFormat(undefined, {
  dateStyle: "medium",
  timeStyle: "medium",
});
const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
  hourCycle: "h23",
});

export const exactTime = (at: string) => exact.format(new Date(at));
/** The time of day, to the millisecond: lines of logs are close together. */
export const clockTime = (at: string) => clock.format(new Date(at));

/** How long ago, or how long until. */
export function ago(at: string, now = Date.now()): string {
  const seconds = (Date.parse(at) - now) / 1000;
  const [unit, size] = units.find(([, each]) => Math.abs(seconds) >= each) ?? ["second", 1];
  return relative.format(Math.round(seconds / size), unit);
}

/** 0.034 s, 12.3 s, 4 min 05 s, 2 h 07 min. */
export function duration(seconds: number): string {
  if (seconds < 0.0995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 59.95) return `${seconds.toFixed(seconds < 9.95 ? 2 : 1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3_600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  const minutes = Math.round(whole / 60);
  if (minutes < 1_440) return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.floor(minutes / 1_440)} d ${Math.floor((minutes % 1_440) / 60)} h`;
}

/** Rendered anew now and then, as time passes. */
export function useNow(milliseconds: number | null): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (milliseconds === null) return;
    setNow(Date.now());
    const timer = setInterval(() => pace(() => setNow(Date.now())), milliseconds);
    return () => clearInterval(timer);
  }, [milliseconds]);
  return now;
}

/** A moment in the zone of who looks, with UTC and the exact time where the pointer rests. */
export function Time({ at, full = false }: { at: string | null | undefined; full?: boolean }) {
  const recent = at != null && Math.abs(Date.now() - Date.parse(at)) < 3_600_000;
  const now = useNow(full || at == null ? null : recent ? 5_000 : 60_000);
  if (at == null) return <span className="text-ink-3">–</span>;
  const utc = `${new Date(at).toISOString().replace("T", " ").slice(0, 23)} UTC`;
  return (
    <time dateTime={at} title={`${exactTime(at)} here\n${utc}`} className="tabular whitespace-nowrap">
      {full ? exactTime(at) : ago(at, now)}
    </time>
  );
}

/** How long something took, or takes so far. */
export function Lasting({ from, to }: { from: string | null | undefined; to: string | null | undefined }) {
  const now = useNow(from && !to ? 1_000 : null);
  if (!from) return <span className="text-ink-3">–</span>;
  const seconds = ((to ? Date.parse(to) : now) - Date.parse(from)) / 1000;
  return <span className="tabular whitespace-nowrap">{duration(Math.max(0, seconds))}</span>;
}
