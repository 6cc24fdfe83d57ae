/** Rows of a long list: only those in sight are in the page. Up and down move, Enter opens, x ticks. */

import { useVirtualizer } from "@tanstack/react-virtual";
import clsx from "clsx";
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { activeIndex } from "./active";

export type Column<Row> = {
  name: string;
  /** A size of CSS grid, as in `minmax(0,1fr)` or `7rem`. */
  width: string;
  cell: (row: Row) => ReactNode;
  align?: "right";
  /** Left out on narrow screens. */
  wideOnly?: boolean;
};

type Props<Row> = {
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  keyOf: (row: Row) => string;
  label: string;
  height?: number;
  onOpen?: (row: Row) => void;
  onTick?: (row: Row) => void;
  /** Called once when the end comes into sight; undefined as long as nothing more can be asked for. */
  onEnd?: () => void;
  selected?: string | null;
  footer?: ReactNode;
  className?: string;
};

export function Rows<Row>(props: Props<Row>) {
  const {
    rows,
    columns,
    keyOf,
    label,
    height = 40,
    onOpen,
    onTick,
    onEnd,
    selected,
    footer,
    className,
  } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const id = useId();
  const [chosen, setChosen] = useState({ key: "", index: 0 });
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: 8,
    getItemKey: (index) => keyOf(rows[index]!),
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? -1;
  const ended = useRef(onEnd);
  ended.current = onEnd;
  const isAtEnd = last >= rows.length - 5 && rows.length > 0;
  const canGoOn = onEnd !== undefined;
  // More rows, and still at the end: once more.
  useEffect(() => {
    if (isAtEnd && canGoOn) ended.current?.();
  }, [isAtEnd, canGoOn, rows.length]);
  // The row that was chosen, wherever it is now; where it was, if it is gone.
  const active = activeIndex(rows, keyOf, chosen);
  const activate = (index: number) => setChosen({ key: keyOf(rows[index]!), index });

  const keyed = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget) return;
    const move = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 12, PageUp: -12 }[event.key];
    const row = rows[active];
    const target =
      { Home: 0, End: rows.length - 1 }[event.key] ?? (move === undefined ? undefined : active + move);
    if (target !== undefined && row && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      const next = Math.max(0, Math.min(rows.length - 1, target));
      activate(next);
      virtual.scrollToIndex(next);
    } else if (event.key === "Enter" && row) onOpen?.(row);
    else if (event.key === "x" && row) onTick?.(row);
  };

  const wide = columns.map((column) => column.width).join(" ");
  const narrow = columns
    .filter((column) => !column.wideOnly)
    .map((column) => column.width)
    .join(" ");
  const grid = "grid items-center gap-3 px-4 grid-cols-(--narrow) md:grid-cols-(--wide)";
  return (
    <div
      ref={scroller}
      role="grid"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      aria-activedescendant={items.some((item) => item.index === active) ? `${id}-${active}` : undefined}
      tabIndex={0}
      onKeyDown={keyed}
      className={clsx("relative min-h-0 flex-1 overflow-auto outline-offset-[-2px]", className)}
      style={{ "--wide": wide, "--narrow": narrow } as React.CSSProperties}
    >
      <div role="rowgroup" className="sticky top-0 z-10 border-b border-line bg-paper">
        <div
          role="row"
          aria-rowindex={1}
          className={clsx(grid, "h-8 text-2xs font-medium tracking-wide text-ink-3 uppercase")}
        >
          {columns.map((column) => (
            <span
              key={column.name}
              role="columnheader"
              className={clsx(
                "truncate",
                column.align === "right" && "text-right",
                column.wideOnly && "hidden md:block",
              )}
            >
              {column.name}
            </span>
          ))}
        </div>
      </div>
      <div role="rowgroup" className="relative" style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const row = rows[item.index]!;
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the table has the keys
            <div
              key={item.key}
              id={`${id}-${item.index}`}
              role="row"
              aria-rowindex={item.index + 2}
              aria-selected={item.key === selected || undefined}
              data-active={item.index === active || undefined}
              onClick={(event) => {
                if ((event.target as HTMLElement).closest("a,button,input")) return;
                activate(item.index);
                onOpen?.(row);
              }}
              className={clsx(
                grid,
                "absolute top-0 left-0 w-full border-b border-line/70 text-[13px] hover:bg-hover",
                onOpen && "cursor-pointer",
                selected === item.key && "bg-accent-soft",
                "in-focus-visible:data-active:bg-hover in-focus-visible:data-active:shadow-[inset_3px_0_var(--focus)]",
              )}
              style={{ height: item.size, transform: `translateY(${item.start}px)` }}
            >
              {columns.map((column) => (
                <span
                  key={column.name}
                  role="gridcell"
                  className={clsx(
                    "min-w-0 truncate",
                    column.align === "right" && "text-right tabular",
                    column.wideOnly && "hidden md:block",
                  )}
                >
                  {column.cell(row)}
                </span>
              ))}
            </div>
          );
        })}
      </div>
      {footer}
    </div>
  );
}
