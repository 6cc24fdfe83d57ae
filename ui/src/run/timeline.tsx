import { useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import clsx from "clsx";
import { useEffect, useMemo, useRef, useState } from "react";
import { symbolOf, words } from "@/api/tables";
import { Segments } from "@/ui/fields";
import { Empty, Failure, Loading } from "@/ui/states";
import { duration, useNow } from "@/ui/time";
import { type Attempt, attemptsQuery } from "./attempts";
import type { RunDetail } from "./data";
import { type Scale, scaleOf } from "./scale";

const ROW = 26;
/** Pixels for the names of nodes: fewer on narrow screens. */
const namesOf = (width: number) => (width < 560 ? 120 : 220);
/** Pixels: in a bar that is this wide its symbol stands inside. */
const SYMBOL_FROM = 16;

type Row = { id: string; name: string; level: number; attempts: Attempt[] };
type Order = "start" | "graph" | "longest";

const longest = (row: Row) =>
  row.attempts.reduce(
    (sum, attempt) => sum + (attempt.ended ?? Number.MAX_SAFE_INTEGER) - attempt.started,
    0,
  );

type Props = { run: RunDetail; isPast: boolean; selected: string | null; onSelect: (node: string) => void };

/** When each attempt waited and ran. Bars belong to nodes by their ids, so a graph that has changed since moves none. */
export function TimelineView({ run, isPast, selected, onSelect }: Props) {
  const { data, error, isPending, refetch } = useQuery(attemptsQuery(run.id));
  const [order, setOrder] = useState<Order>("start");
  const [even, setEven] = useState<"compressed" | "even">("compressed");
  const scroller = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  const names = namesOf(width);
  const running = run.ended_at === null;
  const now = useNow(running ? 1_000 : null);
  const rows = useMemo(() => {
    const byNode = new Map<string, Row>();
    for (const attempt of data?.all ?? []) {
      const row = byNode.get(attempt.node);
      if (row) row.attempts.push(attempt);
      else
        byNode.set(attempt.node, {
          id: attempt.node,
          name: attempt.name,
          level: attempt.level,
          attempts: [attempt],
        });
    }
    const found = [...byNode.values()];
    const first = (row: Row) => row.attempts[0]!.started;
    if (order === "start") found.sort((a, b) => first(a) - first(b));
    if (order === "graph") found.sort((a, b) => a.level - b.level || first(a) - first(b));
    if (order === "longest") found.sort((a, b) => longest(b) - longest(a));
    return found;
  }, [data, order]);
  const until = running && data ? now - data.since : null;
  const scale = useMemo(() => {
    const spans = (data?.all ?? []).map((attempt) => ({
      from: attempt.started,
      to: Math.max(attempt.started, attempt.ended ?? until ?? attempt.started),
    }));
    const asked = Math.min(...(data?.all ?? []).map((attempt) => attempt.waiting));
    return scaleOf(spans, Math.max(120, width - names - 40), even === "compressed", asked);
  }, [data, width, names, even, until]);
  useEffect(() => {
    if (!scroller.current) return;
    const watcher = new ResizeObserver(([entry]) => setWidth(entry!.contentRect.width));
    watcher.observe(scroller.current);
    return () => watcher.disconnect();
  }, [isPending]);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 10,
  });
  if (isPending) return <Loading />;
  if (error) return <Failure error={error} retry={() => void refetch()} />;
  if (rows.length === 0)
    return <Empty title="Nothing has begun yet">Attempts appear here as workers claim nodes.</Empty>;
  return (
    <>
      <div className="flex flex-wrap items-center gap-3 border-b border-line bg-paper px-4 py-2 text-xs text-ink-2">
        <Segments
          label="Order"
          value={order}
          onChange={setOrder}
          options={[
            { value: "start", label: "By start" },
            { value: "graph", label: "As the graph" },
            { value: "longest", label: "Longest" },
          ]}
        />
        {(scale.idle.length > 0 || even === "even") && (
          <Segments
            label="Time axis"
            value={even}
            onChange={setEven}
            options={[
              { value: "compressed", label: "Idle time short" },
              { value: "even", label: "Even" },
            ]}
          />
        )}
        <span className="flex items-center gap-3">
          <Legend
            className="bg-[repeating-linear-gradient(45deg,var(--line-strong)_0_3px,transparent_3px_6px)]"
            text="waiting"
          />
          <Legend className="bg-[var(--st-running)]" text="running" />
        </span>
        {isPast && <span>The timeline shows all of the run, whatever the moment.</span>}
        <span className="flex-1" />
        <span>
          {rows.length.toLocaleString()} nodes, {data.all.length.toLocaleString()} attempts in{" "}
          {duration(scale.total / 1_000)}
          {!data.whole && " (the first ones)"}
        </span>
      </div>
      <div ref={scroller} className="relative min-h-0 flex-1 overflow-auto" role="list" aria-label="Timeline">
        <Axis scale={scale} names={names} height={virtual.getTotalSize()} />
        <div className="relative" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index]!;
            return (
              <div
                key={row.id}
                role="listitem"
                className={clsx(
                  "absolute flex w-full items-center hover:bg-hover",
                  row.id === selected && "bg-accent-soft",
                )}
                style={{ top: item.start, height: ROW }}
              >
                <button
                  type="button"
                  className="h-full shrink-0 truncate px-4 text-left text-xs"
                  style={{ width: names }}
                  onClick={() => onSelect(row.id)}
                  title={row.name}
                >
                  {row.name}
                </button>
                <div className="relative h-full flex-1">
                  {row.attempts.map((attempt) => (
                    <Bar
                      key={attempt.number}
                      attempt={attempt}
                      scale={scale}
                      until={until}
                      onSelect={onSelect}
                    />
                  ))}
                </div>
              </div>
            );
          })}
        </div>
      </div>
    </>
  );
}

function Legend({ className, text }: { className: string; text: string }) {
  return (
    <span className="inline-flex items-center gap-1.5">
      <span className={clsx("h-2.5 w-4 rounded-sm", className)} />
      {text}
    </span>
  );
}

function Axis({ scale, names, height }: { scale: Scale; names: number; height: number }) {
  return (
    <div className="pointer-events-none sticky top-0 z-10 h-0" style={{ marginLeft: names }}>
      {scale.idle.map((gap) => (
        <div
          key={gap.from}
          className="absolute top-0 flex justify-center border-x border-dashed border-line-strong bg-hover/60"
          style={{ left: gap.x, width: gap.w, height: Math.max(height, 60) }}
        >
          <span className="mt-1 h-fit [writing-mode:vertical-rl] text-2xs whitespace-nowrap text-ink-3">
            {duration((gap.to - gap.from) / 1_000)} idle
          </span>
        </div>
      ))}
    </div>
  );
}

type BarProps = { attempt: Attempt; scale: Scale; until: number | null; onSelect: (node: string) => void };

function Bar({ attempt, scale, until, onSelect }: BarProps) {
  const end = attempt.ended ?? Math.max(attempt.started, until ?? attempt.started);
  const [waited, from, to] = [
    scale.x(Math.min(attempt.waiting, attempt.started)),
    scale.x(attempt.started),
    scale.x(end),
  ];
  const ran = duration((end - attempt.started) / 1_000);
  const queued = duration((attempt.started - attempt.waiting) / 1_000);
  const label = `${attempt.name}, attempt ${attempt.number}: ${words(attempt.status)}${attempt.error ? ` (${attempt.error})` : ""}, waited ${queued}, ran ${ran}`;
  return (
    <button
      type="button"
      tabIndex={-1}
      aria-label={label}
      title={`${label}\non ${attempt.worker}`}
      data-status={attempt.status}
      onClick={() => onSelect(attempt.node)}
      className="absolute inset-y-0 flex items-center"
      style={{ left: Math.max(0, waited), width: Math.max(3, to - Math.max(0, waited)) }}
    >
      <span
        className="h-1.5 shrink-0 bg-[repeating-linear-gradient(45deg,var(--line-strong)_0_3px,transparent_3px_6px)]"
        style={{ width: Math.max(0, from - Math.max(0, waited)) }}
      />
      <span className="h-3.5 min-w-0.5 flex-1 rounded-xs bg-[var(--st)]" />
      <span
        aria-hidden="true"
        className={clsx(
          "pointer-events-none absolute text-2xs leading-none",
          to - from > SYMBOL_FROM ? "text-paper" : "text-[var(--st)]",
        )}
        style={{
          left: (to - from > SYMBOL_FROM ? from : Math.max(to, from + 3)) - Math.max(0, waited) + 2,
        }}
      >
        {to - from > SYMBOL_FROM || attempt.status !== "COMPLETED" ? symbolOf(attempt.status) : ""}
      </span>
      {to - from > 60 && (
        <span className="pointer-events-none absolute right-1.5 text-2xs text-paper tabular">{ran}</span>
      )}
    </button>
  );
}
