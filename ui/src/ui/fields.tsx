import clsx from "clsx";
import { Search, X } from "lucide-react";
import { type ComponentProps, type ReactNode, useEffect, useRef, useState } from "react";

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
  useEffect(() => setTyped(value), [value]);
  const change = (text: string, at_once = false) => {
    setTyped(text);
    clearTimeout(timer.current);
    if (at_once) onChange(text);
    else timer.current = window.setTimeout(() => onChange(text), wait);
  };
  return (
    <span className="relative block min-w-0 flex-1">
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
      className="inline-flex rounded-md border border-line-strong bg-canvas p-0.5"
    >
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          role="radio"
          aria-checked={option.value === value}
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
