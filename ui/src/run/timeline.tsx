import { useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import clsx from "clsx";
import { ChevronDown, ChevronRight } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { symbolOf, words } from "@/api/tables";
import type { Graph } from "@/graph/model";
import { Segments } from "@/ui/fields";
import { Name } from "@/ui/name";
import { Empty, Failure, Loading } from "@/ui/states";
import { Status } from "@/ui/status";
import { duration, useNow } from "@/ui/time";
import { type Attempt, attemptsQuery } from "./attempts";
import type { RunDetail } from "./data";
import { count } from "./failures";
import { type Scale, scaleOf, ticksOf, tickText } from "./scale";
import { useRunSearch } from "./search";
import { isBad, type Row, rowsOf, stretchesOf, withSkips } from "./timeline-rows";

const ROW = 26;
/** Pixels for the names of nodes: fewer on narrow screens. */
const namesOf = (width: number) => (width < 560 ? 120 : 220);
/** Failures of a group that are marked in its bar. */
const MARKS = 100;
/** Pixels: in a bar that is this wide its symbol stands inside. */
const SYMBOL_FROM = 16;

type Props = {
  run: RunDetail;
  graph: Graph | null;
  isPast: boolean;
  selected: string | null;
  attempt: number | undefined;
  onSelect: (node: string) => void;
  onAttempt: (node: string, attempt: number) => void;
  onToggle: (group: string) => void;
};

/** When each attempt waited and ran. Bars belong to nodes by their ids, so a graph that has changed since moves none. */
export function TimelineView(props: Props) {
  const { run, graph, isPast, selected, onSelect, onAttempt, onToggle } = props;
  const { search, change } = useRunSearch();
  const { order = "start", even = false } = search;
  const { data, error, isPending, refetch } = useQuery(attemptsQuery(run.id));
  const scroller = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  const names = namesOf(width);
  const running = run.ended_at === null;
  const now = useNow(running ? 1_000 : null);
  const all = useMemo(
    () =>
      withSkips(data?.all ?? [], (id) => {
        const item = graph?.byId.get(id);
        return item?.kind === "node" && item.status === "SKIPPED";
      }),
    [data, graph],
  );
  const rows = useMemo(() => {
    const groupOf = (id: string) => {
      const item = graph?.byId.get(id);
      return item?.kind === "group" ? item : undefined;
    };
    return rowsOf(all, order, {
      nameOf: (id) => groupOf(id)?.name ?? id,
      isOpen: (id) => groupOf(id)?.open ?? false,
    });
  }, [all, order, graph]);
  const statuses = useMemo(() => [...new Set(all.map((each) => each.status))].sort(), [all]);
  const nodes = useMemo(() => new Set((data?.all ?? []).map((each) => each.node)).size, [data]);
  const until = running && data ? now - data.since : null;
  const scale = useMemo(() => {
    const spans = (data?.all ?? []).map((attempt) => ({
      from: attempt.started,
      to: Math.max(attempt.started, attempt.ended ?? until ?? attempt.started),
    }));
    const asked = Math.min(...(data?.all ?? []).map((attempt) => attempt.waiting));
    return scaleOf(spans, Math.max(120, width - names - 40), !even, asked);
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
          onChange={(next) => change({ order: next === "start" ? undefined : next })}
          options={[
            { value: "start", label: "By start" },
            { value: "graph", label: "As the graph" },
            { value: "longest", label: "Longest" },
          ]}
        />
        {(scale.idle.length > 0 || even) && (
          <Segments
            label="Time axis"
            value={even ? "even" : "compressed"}
            onChange={(next) => change({ even: next === "even" || undefined })}
            options={[
              { value: "compressed", label: "Idle time short" },
              { value: "even", label: "Even" },
            ]}
          />
        )}
        <span className="flex flex-wrap items-center gap-x-3 gap-y-1" role="img" aria-label="Legend">
          <span className="inline-flex items-center gap-1.5">
            <span className={clsx("h-2 w-4", WAITED)} />
            waited
          </span>
          {statuses.map((status) => (
            <Status key={status} status={status} plain />
          ))}
        </span>
        {isPast && <span>The timeline shows all of the run, whatever the moment.</span>}
        <span className="flex-1" />
        <span>
          {count(nodes, "node")}, {count(data.all.length, "attempt")} within {duration(scale.total / 1_000)}{" "}
          of its creation
          {!data.whole && " (the first ones)"}
        </span>
      </div>
      <div ref={scroller} className="relative min-h-0 flex-1 overflow-auto">
        <Axis scale={scale} names={names} height={virtual.getTotalSize()} />
        <div
          role="list"
          aria-label="Timeline"
          className="relative"
          style={{ height: virtual.getTotalSize() }}
        >
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
                <RowName row={row} width={names} onSelect={row.group ? onToggle : onSelect} />
                <div className="relative h-full flex-1">
                  {row.group ? (
                    <GroupBars row={row} scale={scale} until={until} onToggle={onToggle} />
                  ) : (
                    row.attempts.map((attempt) => (
                      <Bar
                        key={attempt.number}
                        attempt={attempt}
                        scale={scale}
                        until={until}
                        isChosen={row.id === selected && attempt.number === props.attempt}
                        onOpen={onAttempt}
                      />
                    ))
                  )}
                </div>
              </div>
            );
          })}
        </div>
      </div>
    </>
  );
}

const WAITED = "bg-[repeating-linear-gradient(45deg,var(--line-strong)_0_3px,transparent_3px_6px)]";

function RowName({ row, width, onSelect }: { row: Row; width: number; onSelect: (id: string) => void }) {
  const failed = row.group ? row.attempts.filter(isBad).length : 0;
  const Chevron = row.group?.open ? ChevronDown : ChevronRight;
  return (
    <button
      type="button"
      className={clsx(
        "flex h-full shrink-0 items-center gap-1 pr-2 text-left text-xs",
        row.inside ? "pl-8" : row.group ? "pl-2" : "pl-6",
      )}
      style={{ width }}
      aria-expanded={row.group?.open}
      onClick={() => onSelect(row.id)}
      title={row.name}
    >
      {row.group && <Chevron size={13} className="shrink-0 text-ink-3" />}
      <Name text={row.name} className="min-w-0" />
      {failed > 0 && (
        <span data-status="FAILED" className="text-2xs font-semibold text-[var(--st)]">
          ✗&nbsp;{failed.toLocaleString()}
        </span>
      )}
      {row.group && <span className="text-2xs text-ink-3 tabular">{row.group.size.toLocaleString()}</span>}
    </button>
  );
}

/** The time since the axis begins, and idle stretches: above the rows, and as lines through them. */
function Axis({ scale, names, height }: { scale: Scale; names: number; height: number }) {
  const ticks = useMemo(() => ticksOf(scale), [scale]);
  const lines = { height: Math.max(height, 60) };
  return (
    <>
      <div
        role="img"
        aria-label={`Time since the run was asked for: ${tickText(scale.total)} in all`}
        className="sticky top-0 z-10 h-6 border-b border-line bg-paper text-2xs text-ink-3"
      >
        {ticks.map((tick) => (
          <span
            key={tick.time}
            className="absolute top-1.5 tabular whitespace-nowrap"
            style={{ left: names + tick.x + 3 }}
          >
            {tickText(tick.time)}
          </span>
        ))}
      </div>
      <div className="pointer-events-none absolute top-6" style={{ left: names }}>
        {ticks.map((tick) => (
          <span key={tick.time} className="absolute w-px bg-line" style={{ left: tick.x, ...lines }} />
        ))}
        {scale.idle.map((gap) => (
          <div
            key={gap.from}
            className="absolute top-0 flex justify-center border-x border-dashed border-line-strong bg-hover/60"
            style={{ left: gap.x, width: gap.w, ...lines }}
          >
            <span className="mt-1 h-fit [writing-mode:vertical-rl] text-2xs whitespace-nowrap text-ink-3">
              {duration((gap.to - gap.from) / 1_000)} idle
            </span>
          </div>
        ))}
      </div>
    </>
  );
}

type GroupBarsProps = { row: Row; scale: Scale; until: number | null; onToggle: (group: string) => void };

/** When anything of a group ran, and where something of it failed. */
function GroupBars({ row, scale, until, onToggle }: GroupBarsProps) {
  const stretches = useMemo(
    () => stretchesOf(row.attempts, until ?? 0, scale.total / Math.max(1, scale.width / 2)),
    [row.attempts, until, scale],
  );
  const failed = row.attempts.filter(isBad);
  const active = row.attempts.some((attempt) => attempt.ended === null);
  const from = stretches[0]!.from;
  const to = Math.max(...stretches.map((stretch) => stretch.to));
  const label = `${row.name}: ${count(row.group!.size, "node")}, ${count(failed.length, "failed attempt")}, from the first to the last ${duration((to - from) / 1_000)}`;
  return (
    <button
      type="button"
      tabIndex={-1}
      aria-label={label}
      title={`${label}\nClick to ${row.group!.open ? "close" : "open"} it`}
      onClick={() => onToggle(row.id)}
      className="absolute inset-y-0"
      style={{ left: scale.x(from), width: Math.max(3, scale.x(to) - scale.x(from)) }}
    >
      {stretches.map((stretch) => (
        <span
          key={stretch.from}
          data-status={active ? "RUNNING" : "COMPLETED"}
          className="absolute top-1.5 h-3.5 rounded-xs border border-[var(--st)] bg-[color-mix(in_srgb,var(--st)_30%,transparent)]"
          style={{
            left: scale.x(stretch.from) - scale.x(from),
            width: Math.max(2, scale.x(stretch.to) - scale.x(stretch.from)),
          }}
        />
      ))}
      {failed.slice(0, MARKS).map((attempt) => (
        <span
          key={`${attempt.node} ${attempt.number}`}
          data-status="FAILED"
          className="absolute top-1.5 h-3.5 w-0.5 bg-[var(--st)]"
          style={{ left: scale.x(attempt.ended ?? attempt.started) - scale.x(from) }}
        />
      ))}
    </button>
  );
}

type BarProps = {
  attempt: Attempt;
  scale: Scale;
  until: number | null;
  isChosen: boolean;
  onOpen: (node: string, attempt: number) => void;
};

function Bar({ attempt, scale, until, isChosen, onOpen }: BarProps) {
  const end = attempt.ended ?? Math.max(attempt.started, until ?? attempt.started);
  const [waited, from, to] = [
    scale.x(Math.min(attempt.waiting, attempt.started)),
    scale.x(attempt.started),
    scale.x(end),
  ];
  // Nothing ran: all it did was to evaluate a condition.
  const isSkip = attempt.status === "SKIPPED";
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
      onClick={() => onOpen(attempt.node, attempt.number)}
      className={clsx("absolute inset-y-0 flex items-center", isChosen && "ring-2 ring-[var(--focus)]")}
      style={{ left: Math.max(0, waited), width: Math.max(3, to - Math.max(0, waited)) }}
    >
      <span
        className={clsx("h-1.5 shrink-0", WAITED)}
        style={{ width: Math.max(0, from - Math.max(0, waited)) }}
      />
      <span
        className={clsx(
          "h-3.5 min-w-0.5 flex-1 rounded-xs",
          isSkip ? "border border-dashed border-[var(--st)]" : "bg-[var(--st)]",
        )}
      />
      <span
        aria-hidden="true"
        className={clsx(
          "pointer-events-none absolute text-2xs leading-none",
          to - from > SYMBOL_FROM && !isSkip ? "text-paper" : "text-[var(--st)]",
        )}
        style={{
          left: (to - from > SYMBOL_FROM ? from : Math.max(to, from + 3)) - Math.max(0, waited) + 2,
        }}
      >
        {to - from > SYMBOL_FROM || attempt.status !== "COMPLETED" ? symbolOf(attempt.status) : ""}
      </span>
      {to - from > 60 && !isSkip && (
        <span className="pointer-events-none absolute right-1.5 text-2xs text-paper tabular">{ran}</span>
      )}
    </button>
  );
}
