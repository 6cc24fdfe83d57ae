/** What the address of the audit log keeps: its filter. */

export const ACTIONS = [
  "start",
  "retry",
  "reattempt",
  "cancel",
  "pause",
  "resume",
  "fork",
  "freeze",
  "import",
  "delete",
  "save",
  "activate",
  "add",
  "remove",
  "backfill",
  "create",
  "revoke",
  "gc",
] as const;

export const SINCE = ["hour", "day", "week", "month"] as const;
export type Since = (typeof SINCE)[number];
