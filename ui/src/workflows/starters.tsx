import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Zap } from "lucide-react";
import { triggersQuery } from "@/api/queries";
import { whenOf, workflowOf } from "@/triggers/when";
import { Time } from "@/ui/time";

/** What starts the workflow by itself, and when next. Nothing where nothing does. */
export function Starters({ name }: { name: string }) {
  const { data, error } = useQuery(triggersQuery);
  const own = data?.filter((trigger) => workflowOf(trigger) === name) ?? [];
  if (own.length === 0 && !error) return null;
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-1 border-b border-line bg-paper px-4 py-2 text-xs text-ink-2">
      <span className="inline-flex items-center gap-1.5">
        <Zap size={13} aria-hidden /> Starts by itself
      </span>
      {error && <span className="text-danger">{error.message}</span>}
      {own.map((trigger) => (
        <span key={trigger.name} className="inline-flex flex-wrap items-center gap-x-1.5">
          <Link to="/triggers" search={{ name: trigger.name }} className="text-accent hover:underline">
            {trigger.name}
          </Link>
          {trigger.paused ? (
            <span className="text-warn">paused</span>
          ) : trigger.next[0] ? (
            <span>
              next <Time at={trigger.next[0]} />
            </span>
          ) : (
            <span>{whenOf(trigger)}</span>
          )}
          {trigger.error && <span className="text-danger">could not start a run</span>}
        </span>
      ))}
    </div>
  );
}
