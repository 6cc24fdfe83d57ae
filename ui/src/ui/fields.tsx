import { useRouter } from "@tanstack/react-router";
import clsx from "clsx";
import { Search, X } from "lucide-react";
import { type ComponentProps, type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";

export const fieldClass =
  "h-8 w-full rounded-md border border-line-strong bg-raised px-2.5 text-[13px] text-ink placeholder:text-ink-3";

export function TextField({ className, ...rest }: ComponentProps<"input">) {
  return <input className={clsx(fieldClass, className)} {...rest} />;
}

export function Select({ className, children, ...rest }: ComponentProps<"select">) {
  return (
    <select className={clsx(fieldClass, "pr-7", className)} {...rest}>
      {children}
    </select>
  );
}

export function Field({ label, hint, children }: { label: string; hint?: ReactNode; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is the child
    <label className="block space-y-1">
      <span className="text-xs font-medium text-ink-2">{label}</span>
      {children}
      {hint && <span className="block text-xs text-ink-3">{hint}</span>}
    </label>
  );
}

type SearchProps = {
  value: string;
  onChange: (text: string) => void;
  placeholder: string;
  label?: string;
  wait?: number;
};

/** A box to search with: what is typed counts once the typing rests, and at once with Enter. */
export function SearchField({ value, onChange, placeholder, label, wait = 250 }: SearchProps) {
  const [typed, setTyped] = useState(value);
  const timer = useRef(0);
  // What this box said last: when it comes back as the value, more may have been typed since.
  const said = useRef(value);
  useEffect(() => {
    if (value === said.current) return;
    said.current = value;
    clearTimeout(timer.current);
    setTyped(value);
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const router = useRouter();
  const say = (text: string) => {
    // Another page is on its way: what is typed meanwhile must not lead back to this one.
    const { location, resolvedLocation } = router.state;
    if (resolvedLocation && resolvedLocation.pathname !== location.pathname) return;
    said.current = text;
    onChange(text);
  };
  const change = (text: string, at_once = false) => {
    setTyped(text);
    clearTimeout(timer.current);
    if (at_once) say(text);
    else timer.current = window.setTimeout(() => say(text), wait);
  };
  return (
    <span className="relative block min-w-36 flex-1">
      <Search size={14} className="pointer-events-none absolute top-2.5 left-2.5 text-ink-3" />
      <input
        type="text"
        role="searchbox"
        aria-label={label ?? placeholder}
        data-search
        value={typed}
        placeholder={placeholder}
        className={clsx(fieldClass, "pr-7 pl-8")}
        onChange={(event) => change(event.target.value)}
        // Whoever goes on to a link goes there after this, and not back from there.
        onBlur={() => typed !== said.current && change(typed, true)}
        onKeyDown={(event) => {
          if (event.key === "Enter") change(typed, true);
          if (event.key === "Escape" && typed) {
            event.stopPropagation();
            change("", true);
          }
        }}
      />
      {typed && (
        <button
          type="button"
          aria-label="Clear"
          className="absolute top-2 right-2 text-ink-3 hover:text-ink"
          onClick={() => change("", true)}
        >
          <X size={15} />
        </button>
      )}
    </span>
  );
}

/** Arrow keys go to, and choose, the button before or after; Home and End the first and the last. */
export function moveChoice(event: KeyboardEvent<HTMLElement>) {
  const buttons = [...event.currentTarget.querySelectorAll<HTMLButtonElement>("[role=radio],[role=tab]")];
  const at = buttons.indexOf(event.target as HTMLButtonElement);
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const next = { Home: 0, End: buttons.length - 1 }[event.key] ?? (step === undefined ? -1 : at + step);
  if (at < 0 || (step === undefined && next < 0)) return;
  event.preventDefault();
  const button = buttons[(next + buttons.length) % buttons.length]!;
  button.focus();
  button.click();
}

/** One of a few, as buttons in a row. */
export function Segments<T extends string>({
  value,
  options,
  onChange,
  label,
}: {
  value: T;
  options: readonly { value: T; label: string; icon?: ReactNode }[];
  onChange: (value: T) => void;
  label: string;
}) {
  return (
    <div
      role="radiogroup"
      aria-label={label}
      onKeyDown={moveChoice}
      className="inline-flex rounded-md border border-line-strong bg-canvas p-0.5"
    >
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          role="radio"
          aria-checked={option.value === value}
          tabIndex={option.value === value ? 0 : -1}
          onClick={() => onChange(option.value)}
          className={clsx(
            "inline-flex h-6.5 items-center gap-1.5 rounded px-2.5 text-xs font-medium",
            option.value === value ? "bg-raised text-ink shadow-sm" : "text-ink-2 hover:text-ink",
          )}
        >
          {option.icon}
          {option.label}
        </button>
      ))}
    </div>
  );
}
