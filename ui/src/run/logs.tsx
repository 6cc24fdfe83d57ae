import { useVirtualizer } from "@tanstack/react-virtual";
import clsx from "clsx";
import { ArrowDownToLine, Download, WrapText, X } from "lucide-react";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { API } from "@/api/client";
import { hasEnded } from "@/api/tables";
import { useKeys } from "@/shell/keys";
import { Button, buttonClass } from "@/ui/button";
import { SearchField, Select } from "@/ui/fields";
import { Empty, Failure, Loading } from "@/ui/states";
import { clockTime } from "@/ui/time";
import type { RunDetail } from "./data";
import { keyOf, LEVELS, type Line, useLines } from "./lines";
import { useRunSearch } from "./search";

const ROW = 20;
/** Older lines are asked for when fewer than so many are above what is seen. */
const ABOVE = 100;
const COLOURS: Record<string, string> = {
  WARNING: "text-warn",
  ERROR: "text-danger",
  CRITICAL: "text-danger font-semibold",
  DEBUG: "text-ink-3",
};

/** What the bodies of a run, or of one node, logged and printed. Rows are of one height, so that nothing jumps. */
export function LogsView({ run, node }: { run: RunDetail; node?: string }) {
  const { search, change } = useRunSearch();
  const level = LEVELS.find((each) => each === search.level);
  const q = search.q;
  const attempt = node === undefined ? undefined : search.attempt;
  const filter = { node, attempt, level, q };
  const [follow, setFollow] = useState(!hasEnded(run.status) && search.line === undefined);
  const [wrap, setWrap] = useState(false);
  const active = !hasEnded(run.status);
  const { lines, error, isPending, hasOlder, older, refetch } = useLines(run.id, filter, active, follow);
  const download = `${API}/runs/${encodeURIComponent(run.id)}/logs?${new URLSearchParams(
    Object.entries({ ...filter, format: "text" }).flatMap(([name, value]) =>
      value == null ? [] : [[name, String(value)]],
    ),
  )}`;
  useKeys({ w: () => setWrap(!wrap) });
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex flex-wrap items-center gap-2 border-b border-line bg-paper px-4 py-2">
        <SearchField
          value={q ?? ""}
          onChange={(next) => change({ q: next || undefined })}
          placeholder="Search in all lines"
        />
        <Select
          aria-label="Level"
          className="w-auto!"
          value={level ?? ""}
          onChange={(event) => change({ level: event.target.value || undefined })}
        >
          <option value="">Any level</option>
          {LEVELS.map((each) => (
            <option key={each} value={each}>
              {each} and above
            </option>
          ))}
        </Select>
        {attempt !== undefined && (
          <Button
            small
            look="primary"
            icon={<X size={13} />}
            title="Show the lines of all attempts"
            onClick={() => change({ attempt: undefined })}
          >
            Attempt {attempt} only
          </Button>
        )}
        <Button
          small
          look={wrap ? "primary" : "plain"}
          aria-pressed={wrap}
          icon={<WrapText size={13} />}
          onClick={() => setWrap(!wrap)}
        >
          Wrap
        </Button>
        {active && (
          <Button
            small
            look={follow ? "primary" : "plain"}
            aria-pressed={follow}
            icon={<ArrowDownToLine size={13} />}
            onClick={() => setFollow(!follow)}
          >
            Follow
          </Button>
        )}
        <a href={download} download={`${run.id}.log`} className={buttonClass("plain", true)}>
          <Download size={13} /> Download
        </a>
      </div>
      <div data-log className="flex min-h-0 flex-1 flex-col">
        {error != null && lines.length > 0 && (
          <Failure error={error} retry={refetch} className="my-2! shrink-0" />
        )}
        {isPending && !error ? (
          <Loading />
        ) : error && lines.length === 0 ? (
          <Failure error={error} retry={refetch} />
        ) : lines.length === 0 && !hasOlder ? (
          <Empty title={q || level ? "No line matches" : "Nothing was logged"}>
            {!(q || level) && "What bodies print, and log with logging, is kept here."}
          </Empty>
        ) : (
          <LineRows
            lines={lines}
            hasOlder={hasOlder}
            older={older}
            follow={follow}
            onScrollUp={() => setFollow(false)}
            onEnd={() => setFollow(active)}
            wrap={wrap}
            named={node === undefined}
          />
        )}
      </div>
    </div>
  );
}

type RowsProps = {
  lines: Line[];
  hasOlder: boolean;
  older: () => Promise<void>;
  follow: boolean;
  onScrollUp: () => void;
  onEnd: () => void;
  wrap: boolean;
  named: boolean;
};

function LineRows({ lines, hasOlder, older, follow, onScrollUp, onEnd, wrap, named }: RowsProps) {
  const { search, change } = useRunSearch();
  const scroller = useRef<HTMLDivElement>(null);
  const chosen = useMemo(
    () => (search.line === undefined ? -1 : lines.findIndex((line) => keyOf(line) === search.line)),
    [lines, search.line],
  );
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    getItemKey: (index) => keyOf(lines[index]!),
    overscan: 30,
  });
  // It begins at its end; lines that come above what is seen move nothing.
  const top = useRef<string | null>(null);
  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box || lines.length === 0) return;
    const before = top.current === null ? -1 : lines.findIndex((line) => keyOf(line) === top.current);
    if (top.current === null || follow) box.scrollTop = box.scrollHeight;
    else if (before > 0) box.scrollTop += virtual.measurementsCache[before]?.start ?? before * ROW;
    top.current = keyOf(lines[0]!);
  }, [lines, follow, virtual]);
  useKeys({
    End: () => {
      if (scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight;
      onEnd();
    },
  });
  const addressed = useRef(false);
  useEffect(() => {
    if (addressed.current || chosen < 0) return;
    addressed.current = true;
    virtual.scrollToIndex(chosen, { align: "center" });
  }, [chosen, virtual]);
  // Until the line of the address is there, and what is seen is full.
  const isWanted = search.line !== undefined && chosen < 0 && !addressed.current;
  useEffect(() => {
    const box = scroller.current;
    if (hasOlder && (isWanted || (box && lines.length * ROW < box.clientHeight))) void older();
  }, [hasOlder, isWanted, lines, older]);
  return (
    <div
      ref={scroller}
      role="log"
      aria-label="Log lines"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the log is scrolled by keys
      tabIndex={0}
      className="min-h-0 flex-1 overflow-auto bg-canvas font-mono text-xs leading-5 outline-offset-[-2px]"
      onScroll={(event) => hasOlder && event.currentTarget.scrollTop < ABOVE * ROW && void older()}
      onWheel={(event) => event.deltaY < 0 && onScrollUp()}
      onKeyDown={(event) => ["PageUp", "ArrowUp", "Home"].includes(event.key) && onScrollUp()}
    >
      <div className="relative min-w-full" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const line = lines[item.index]!;
          return (
            <div
              key={item.key}
              ref={wrap ? virtual.measureElement : undefined}
              data-index={item.index}
              className={clsx(
                "absolute flex gap-2 px-2 hover:bg-hover sm:gap-3 sm:px-4",
                wrap ? "w-full break-all whitespace-pre-wrap" : "w-max min-w-full whitespace-pre",
                item.index === chosen && "bg-accent-soft",
              )}
              style={{ top: item.start, minHeight: ROW }}
            >
              <button
                type="button"
                tabIndex={-1}
                title={`${line.time}, line ${line.index + 1}: make this the address`}
                className="shrink-0 text-ink-3 select-none hover:text-accent"
                onClick={() => change({ line: keyOf(line) })}
              >
                {clockTime(line.time)}
              </button>
              {named && (
                <button
                  type="button"
                  tabIndex={-1}
                  className="w-20 shrink-0 truncate sm:w-32 text-left text-ink-2 select-none hover:text-accent"
                  onClick={() => change({ node: line.node_id, tab: "logs" })}
                >
                  {line.node}
                </button>
              )}
              <span className={clsx("w-14 shrink-0 select-none", COLOURS[line.level] ?? "text-ink-2")}>
                {line.level}
              </span>
              <span className={COLOURS[line.level]}>
                {line.message.length > 4_000 && !wrap ? `${line.message.slice(0, 4_000)}…` : line.message}
              </span>
            </div>
          );
        })}
      </div>
    </div>
  );
}
