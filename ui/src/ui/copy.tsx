import { Check, Copy } from "lucide-react";
import { useState } from "react";
import { IconButton } from "./button";
import { notify } from "./overlays";

/** Put a text into the clipboard; where pages may not (plain http), select it in a field of its own. */
async function copy(text: string) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

export function CopyButton({ text, label }: { text: string | (() => string); label: string }) {
  const [done, setDone] = useState(false);
  return (
    <IconButton
      label={label}
      className="size-6!"
      onClick={async () => {
        try {
          await copy(typeof text === "string" ? text : text());
          setDone(true);
          setTimeout(() => setDone(false), 1_500);
        } catch {
          notify("The browser did not allow copying.", { bad: true });
        }
      }}
    >
      {done ? <Check size={13} /> : <Copy size={13} />}
    </IconButton>
  );
}

/** Of a command that has a large input, so much is shown; all of it is copied. */
const SHOWN = 2_000;

/** A command that can be copied: what the page does, the command line can do. */
export function Command({ text }: { text: string }) {
  return (
    <div className="flex items-center gap-2 rounded-md border border-line bg-canvas py-1 pr-1 pl-2.5 font-mono text-xs">
      <span className="text-ink-3 select-none">$</span>
      <code className="min-w-0 flex-1 break-words whitespace-pre-wrap">
        {text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text}
      </code>
      <CopyButton text={text} label="Copy the command" />
    </div>
  );
}

/** An id, which people copy and never read. */
export function Id({ text }: { text: string }) {
  return (
    <span className="inline-flex items-center gap-0.5 font-mono text-xs">
      <span className="break-all">{text}</span>
      <CopyButton text={text} label={`Copy ${text}`} />
    </span>
  );
}
