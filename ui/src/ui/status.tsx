import clsx from "clsx";
import { symbolOf, words } from "@/api/tables";

/** A status: never by colour alone. */
export function Status({
  status,
  plain = false,
  className,
}: {
  status: string;
  plain?: boolean;
  className?: string;
}) {
  return (
    <span
      data-status={status}
      className={clsx(
        "inline-flex items-center gap-1 whitespace-nowrap text-xs font-medium text-[var(--st)]",
        !plain &&
          "rounded-full border border-[color-mix(in_srgb,var(--st)_35%,transparent)] bg-[color-mix(in_srgb,var(--st)_10%,transparent)] px-2 py-px",
        className,
      )}
    >
      <span aria-hidden="true" className="w-3 text-center">
        {symbolOf(status)}
      </span>
      {words(status)}
    </span>
  );
}

/** What is done comes first, then what went wrong, what is at work, and what is still to come. */
const ORDER: readonly string[] = [
  ...["COMPLETED", "ENDED", "SKIPPED", "FAILED", "INTERRUPTED", "UPSTREAM_FAILED", "CANCELLED"],
  ...["RUNNING", "WAITING", "READY", "PENDING"],
];
const FADED: ReadonlySet<string> = new Set(["ENDED", "SKIPPED", "READY"]);

/** Shares of a whole by status, as one bar with its numbers in words. */
export function StatusBar({
  counts,
  className,
}: {
  counts: Partial<Record<string, number>>;
  className?: string;
}) {
  const parts = Object.entries(counts)
    .filter((part): part is [string, number] => (part[1] ?? 0) > 0)
    .sort(([a], [b]) => ORDER.indexOf(a) - ORDER.indexOf(b));
  const total = parts.reduce((sum, [, count]) => sum + count, 0);
  const label = parts.map(([status, count]) => `${count.toLocaleString()} ${words(status)}`).join(", ");
  return (
    <span
      role="img"
      aria-label={label || "nothing"}
      title={label}
      className={clsx("flex h-1.5 w-full overflow-hidden rounded-full bg-line", className)}
    >
      {parts.map(([status, count]) => (
        <span
          key={status}
          data-status={status}
          className={clsx(
            "h-full min-w-0.5 bg-[var(--st)]",
            status === "PENDING" && "opacity-25",
            FADED.has(status) && "opacity-50",
          )}
          style={{ width: `${(100 * count) / total}%` }}
        />
      ))}
    </span>
  );
}
