/** The pages that the navigation, the palette and the keys lead to. */

import { House, Play, Server, Workflow, Zap } from "lucide-react";

export const PAGES = [
  { to: "/", label: "Home", icon: House, key: "h" },
  { to: "/runs", label: "Runs", icon: Play, key: "r" },
  { to: "/workflows", label: "Workflows", icon: Workflow, key: "w" },
  { to: "/triggers", label: "Triggers", icon: Zap, key: "t" },
  { to: "/workers", label: "Workers", icon: Server, key: "o" },
] as const;
