/** Entries of the audit log, as the page of the log and the page of a run show them. */

import type { Schemas } from "@/api/client";

export type Entry = Schemas["AuditEntryRecord"];

const VIA: Record<Entry["via"], string> = {
  cli: "command line",
  http: "HTTP",
  ui: "web UI",
  python: "Python",
  trigger: "trigger",
};

/** Who asked, and with what. */
export function Who({ entry }: { entry: Entry }) {
  return (
    <>
      <span className="font-medium" title={entry.token ? `token ${entry.token}` : undefined}>
        {entry.who}
      </span>{" "}
      <span className="text-ink-3">{VIA[entry.via]}</span>
    </>
  );
}

const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

/** What was asked for, and how. */
export function What({ entry }: { entry: Entry }) {
  const options = Object.entries(entry.options).filter(([, value]) => value !== null);
  return (
    <>
      {entry.action}
      {options.length > 0 && (
        <span className="text-ink-3">
          {" "}
          {options.map(([name, value]) => `${name}: ${shown(value)}`).join(", ")}
        </span>
      )}
    </>
  );
}
