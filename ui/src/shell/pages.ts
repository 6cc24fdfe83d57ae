/** The pages that the navigation, the palette and the keys lead to. */

import { House, Play, ScrollText, Server, Workflow, Zap } from "lucide-react";
import type { Scope } from "@/api/tables";
import { useSession } from "./session";

export const PAGES = [
  { to: "/", label: "Home", icon: House, key: "h", scope: "read" },
  { to: "/runs", label: "Runs", icon: Play, key: "r", scope: "read" },
  { to: "/workflows", label: "Workflows", icon: Workflow, key: "w", scope: "read" },
  { to: "/triggers", label: "Triggers", icon: Zap, key: "t", scope: "read" },
  { to: "/workers", label: "Workers", icon: Server, key: "o", scope: "read" },
  { to: "/audit-log", label: "Audit log", icon: ScrollText, key: "a", scope: "admin" },
] as const satisfies readonly { scope: Scope; [more: string]: unknown }[];

/** Those that one may see. Whoever sees a page at all may read, so what needs no more is there before the server has said who it is. */
export function usePages() {
  const { may } = useSession();
  return PAGES.filter(({ scope }) => scope === "read" || may(scope));
}
