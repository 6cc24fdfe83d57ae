/** Tells, outside of the page too, when a run ends that is waited for. */

import { useQuery } from "@tanstack/react-query";
import { Bell, BellRing } from "lucide-react";
import { useEffect, useState } from "react";
import { runQuery } from "@/api/queries";
import { hasEnded, words } from "@/api/tables";
import { IconButton } from "@/ui/button";
import { notify } from "@/ui/overlays";
import type { RunDetail } from "./data";

/** A hidden page has no stream, and asks now and then. */
const LOOK_EVERY = 10_000;

export function Watch({ run }: { run: RunDetail }) {
  const [isWatched, setWatched] = useState(false);
  const isOver = hasEnded(run.status);
  useQuery({
    ...runQuery(run.id),
    enabled: isWatched && !isOver,
    refetchInterval: LOOK_EVERY,
    refetchIntervalInBackground: true,
  });
  useEffect(() => {
    if (!isWatched || !isOver) return;
    setWatched(false);
    const text = `${run.workflow} ${words(run.status)}`;
    try {
      new Notification(text, { body: run.id, tag: run.id }).onclick = () => window.focus();
    } catch {
      notify(text); // browsers of phones have no such constructor
    }
  }, [isWatched, isOver, run.workflow, run.status, run.id]);
  if (isOver || !("Notification" in window)) return null;
  const toggle = async () => {
    if (isWatched) return setWatched(false);
    if ((await Notification.requestPermission()) === "granted") setWatched(true);
    else notify("The browser does not allow notifications of this page.", { bad: true });
  };
  const Icon = isWatched ? BellRing : Bell;
  return (
    <IconButton
      label="Notify me when it ends"
      aria-pressed={isWatched}
      className={isWatched ? "text-accent!" : undefined}
      onClick={() => void toggle()}
    >
      <Icon size={15} />
    </IconButton>
  );
}
