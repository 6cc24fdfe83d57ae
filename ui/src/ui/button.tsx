import clsx from "clsx";
import type { ButtonHTMLAttributes, ReactNode } from "react";

type Look = "plain" | "primary" | "danger" | "ghost";

const LOOKS: Record<Look, string> = {
  plain: "border border-line-strong bg-raised hover:bg-hover text-ink",
  primary: "bg-accent text-accent-ink hover:opacity-90 border border-transparent",
  danger: "border border-danger/40 bg-danger-soft text-danger hover:border-danger",
  ghost: "border border-transparent text-ink-2 hover:bg-hover hover:text-ink",
};

type Props = ButtonHTMLAttributes<HTMLButtonElement> & { look?: Look; small?: boolean; icon?: ReactNode };

export const buttonClass = (look: Look = "plain", small = false) =>
  clsx(
    "inline-flex items-center justify-center gap-1.5 rounded-md font-medium whitespace-nowrap select-none transition-colors",
    "disabled:opacity-50 disabled:cursor-not-allowed",
    small ? "h-7 px-2 text-xs" : "h-8 px-3 text-[13px]",
    LOOKS[look],
  );

export function Button({ look, small, icon, className, children, ...rest }: Props) {
  return (
    <button type="button" className={clsx(buttonClass(look, small), className)} {...rest}>
      {icon}
      {children}
    </button>
  );
}

/** A button that is only a picture: it needs a name. */
export function IconButton({ label, children, className, ...rest }: Props & { label: string }) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      className={clsx(
        "inline-flex size-8 shrink-0 items-center justify-center rounded-md text-ink-2 hover:bg-hover hover:text-ink disabled:opacity-40",
        className,
      )}
      {...rest}
    >
      {children}
    </button>
  );
}
