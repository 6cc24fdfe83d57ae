import { ChevronRight } from "lucide-react";
import { useState } from "react";
import { CopyButton } from "./copy";

const AT_ONCE = 100;
const LONG = 2_000;

/** JSON as a tree that opens in place. Only what is open is in the page, a hundred items at a time. */
export function Json({ value, open = 2 }: { value: unknown; open?: number }) {
  return (
    <div className="group relative overflow-auto rounded-md border border-line bg-canvas p-3 font-mono text-xs leading-5">
      <span className="absolute top-1.5 right-1.5 opacity-0 group-hover:opacity-100 focus-within:opacity-100">
        <CopyButton text={() => JSON.stringify(value, null, 2)} label="Copy as JSON" />
      </span>
      <Value value={value} open={open} />
    </div>
  );
}

function Value({ value, open, name }: { value: unknown; open: number; name?: string }) {
  const key = name === undefined ? null : <span className="text-ink-2">{name}: </span>;
  if (value === null || typeof value !== "object") {
    return (
      <div className="break-words whitespace-pre-wrap">
        {key}
        <Scalar value={value} />
      </div>
    );
  }
  return <Branch value={value} open={open} name={name} />;
}

function Branch({ value, open, name }: { value: object; open: number; name?: string }) {
  const [isOpen, setOpen] = useState(open > 0);
  const [shown, setShown] = useState(AT_ONCE);
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  const brackets = isList ? "[]" : "{}";
  if (entries.length === 0) {
    return (
      <div>
        {name !== undefined && <span className="text-ink-2">{name}: </span>}
        {brackets}
      </div>
    );
  }
  return (
    <div>
      <button
        type="button"
        className="-ml-0.5 inline-flex items-center rounded hover:bg-hover"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <ChevronRight size={12} className={isOpen ? "rotate-90" : ""} />
        {name !== undefined && <span className="text-ink-2">{name}:&nbsp;</span>}
        <span className="text-ink-3">
          {brackets[0]}
          {isOpen ? "" : `${entries.length.toLocaleString()}${isList ? " items" : " keys"}${brackets[1]}`}
        </span>
      </button>
      {isOpen && (
        <>
          <div className="ml-1.5 border-l border-line pl-3">
            {entries.slice(0, shown).map(([each, item]) => (
              <Value key={each} name={each} value={item} open={open - 1} />
            ))}
            {shown < entries.length && (
              <button
                type="button"
                className="text-accent hover:underline"
                onClick={() => setShown(shown + AT_ONCE * 5)}
              >
                {(entries.length - shown).toLocaleString()} more
              </button>
            )}
          </div>
          <span className="text-ink-3">{brackets[1]}</span>
        </>
      )}
    </div>
  );
}

function Scalar({ value }: { value: unknown }) {
  const [whole, setWhole] = useState(false);
  if (typeof value !== "string")
    return <span className="text-[var(--st-running)]">{JSON.stringify(value) ?? "null"}</span>;
  const cut = !whole && value.length > LONG;
  return (
    <span className="text-[var(--st-completed)]">
      {JSON.stringify(cut ? value.slice(0, LONG) : value)}
      {cut && (
        <button type="button" className="ml-1 text-accent hover:underline" onClick={() => setWhole(true)}>
          … {value.length.toLocaleString()} characters
        </button>
      )}
    </span>
  );
}
