import clsx from "clsx";
import { CircleAlert, CloudOff, Inbox, Lock, RotateCw } from "lucide-react";
import type { ReactNode } from "react";
import { ApiError, Unreachable } from "@/api/client";
import { Button } from "./button";

/** Nothing is there, which is no error: says so, and what to do. */
export function Empty({ title, children, icon }: { title: string; children?: ReactNode; icon?: ReactNode }) {
  return (
    <div className="flex flex-col items-center justify-center gap-2 px-6 py-14 text-center">
      <span className="text-ink-3">{icon ?? <Inbox size={26} strokeWidth={1.5} />}</span>
      <p className="font-medium text-ink">{title}</p>
      {children && <div className="max-w-prose text-[13px] text-ink-2">{children}</div>}
    </div>
  );
}

/** What went wrong, in the words of the server. */
export function Failure({
  error,
  retry,
  className,
}: {
  error: unknown;
  retry?: () => void;
  className?: string;
}) {
  const away = error instanceof Unreachable;
  const refused = error instanceof ApiError ? error : null;
  const forbidden = refused?.status === 403;
  const Icon = away ? CloudOff : forbidden ? Lock : CircleAlert;
  return (
    <div
      role="alert"
      className={clsx(
        "m-4 flex items-start gap-3 rounded-lg border border-danger/40 bg-danger-soft p-4 text-danger",
        className,
      )}
    >
      <Icon size={18} className="mt-0.5 shrink-0" />
      <div className="min-w-0 flex-1 space-y-1">
        <p className="font-medium break-words">{error instanceof Error ? error.message : String(error)}</p>
        {refused?.problem.problems?.map((each) => (
          <p key={`${each.path} ${each.message}`} className="font-mono text-xs break-words">
            {each.path} {each.message}
          </p>
        ))}
      </div>
      {retry && (
        <Button small icon={<RotateCw size={13} />} onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** Something is on its way: lines where the rows will be, so that nothing jumps. */
export function Loading({ rows = 6, label = "Loading" }: { rows?: number; label?: string }) {
  return (
    <div role="status" aria-label={label} className="space-y-2 p-4">
      {Array.from({ length: rows }, (_, row) => (
        <div
          key={row}
          className="h-7 animate-pulse rounded bg-hover"
          style={{ width: `${96 - ((row * 37) % 30)}%` }}
        />
      ))}
    </div>
  );
}
