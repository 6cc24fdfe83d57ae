/** The items of a graph as elements of the page: nodes, and groups that are open or closed. */

import clsx from "clsx";
import { ChevronDown, ChevronRight } from "lucide-react";
import { memo, type ReactNode } from "react";
import { conditionWords, reasonWords } from "@/api/reasons";
import { type NodeStatus, symbolOf, words } from "@/api/tables";
import { Name } from "@/ui/name";
import { StatusBar } from "@/ui/status";
import type { Place } from "./layout";
import type { GraphGroup, GraphNode } from "./model";
import type { Mark } from "./paint";

type NodeProps = {
  node: GraphNode;
  place: Place;
  status: NodeStatus | null;
  mark: Mark | null;
  selected: boolean;
  dim: boolean;
  note: ReactNode;
  onSelect?: (id: string | null) => void;
};

export const Node = memo(function Node(props: NodeProps) {
  const { node, place, status, mark, selected, dim, note, onSelect } = props;
  const symbol = mark?.symbol ?? (status && symbolOf(status));
  return (
    <button
      type="button"
      tabIndex={-1}
      data-node={node.id}
      data-status={mark?.look ?? status ?? "PENDING"}
      aria-pressed={selected}
      title={titleOf(node, status)}
      onClick={() => onSelect?.(node.id)}
      className={clsx(
        "absolute flex items-center gap-2 overflow-hidden rounded-lg border border-l-[3px] border-l-[var(--st)] px-2.5 text-left hover:border-[var(--st)]",
        status === "SKIPPED"
          ? "border-dashed border-line-strong bg-canvas text-ink-3"
          : "bg-raised shadow-xs",
        selected && "ring-2 ring-[var(--focus)]",
        dim && "opacity-55",
      )}
      style={{ left: place.x, top: place.y, width: place.w, height: place.h }}
    >
      {symbol && (
        <span
          aria-hidden="true"
          className={clsx(
            "w-3.5 shrink-0 text-center text-[13px] text-[var(--st)]",
            status === "RUNNING" && !mark && "animate-pulse",
          )}
        >
          {symbol}
        </span>
      )}
      <span className="min-w-0 flex-1">
        <Name text={node.name} className="text-[13px] font-medium" />
        {note != null && <span className="block truncate text-2xs text-ink-3">{note}</span>}
      </span>
    </button>
  );
});

/** Its status and why, and what must hold for it to run. */
function titleOf(node: GraphNode, status: NodeStatus | null) {
  const reason = status === "SKIPPED" && node.reason ? `, ${reasonWords(node.reason)}` : "";
  const condition = node.condition ? `\nRuns if ${conditionWords(node.condition)}` : "";
  return `${node.name}${status ? `: ${words(status)}${reason}` : ""}${condition}`;
}

type GroupProps = {
  group: GraphGroup;
  place: Place;
  selected: boolean;
  dim: boolean;
  onToggle: (group: GraphGroup) => void;
};

export const Group = memo(function Group({ group, place, selected, dim, onToggle }: GroupProps) {
  const counted = Object.values(group.counts).some((count) => (count ?? 0) > 0);
  const failed = (group.counts.FAILED ?? 0) + (group.counts.INTERRUPTED ?? 0);
  const Chevron = group.open ? ChevronDown : ChevronRight;
  const head = (
    <>
      <Chevron size={14} className="shrink-0 text-ink-3" />
      <Name text={group.name} className="min-w-0 flex-1 text-[13px] font-medium" />
      {failed > 0 && (
        <span data-status="FAILED" className="text-2xs font-semibold text-[var(--st)]">
          ✗ {failed.toLocaleString()}
        </span>
      )}
      <span className="text-2xs text-ink-3 tabular">{group.size.toLocaleString()}</span>
    </>
  );
  const box = { left: place.x, top: place.y, width: place.w, height: place.h };
  if (group.open) {
    return (
      <div
        className={clsx("absolute rounded-xl border border-dashed border-line-strong", dim && "opacity-55")}
        style={box}
      >
        <button
          type="button"
          tabIndex={-1}
          data-group={group.id}
          aria-expanded="true"
          onClick={() => onToggle(group)}
          className="flex h-7 w-full items-center gap-1.5 px-2.5 text-left hover:text-accent"
        >
          {head}
        </button>
      </div>
    );
  }
  return (
    <button
      type="button"
      tabIndex={-1}
      data-group={group.id}
      aria-expanded="false"
      title={`${group.name}: open these ${group.size.toLocaleString()}`}
      onClick={() => onToggle(group)}
      className={clsx(
        "absolute flex flex-col justify-center gap-1.5 rounded-lg border border-line-strong bg-raised px-2.5 text-left shadow-[3px_3px_0_var(--line),6px_6px_0_var(--hover)] hover:border-accent",
        selected && "ring-2 ring-[var(--focus)]",
        dim && "opacity-55",
      )}
      style={box}
    >
      <span className="flex items-center gap-1.5">{head}</span>
      {counted && <StatusBar counts={group.counts} />}
    </button>
  );
});
