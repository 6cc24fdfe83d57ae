import clsx from "clsx";

/** Names that are longer are cut in the middle: those of one graph often begin alike, and differ in how they end. */
const LONG = 22;
const TAIL = 13;

/** A name in little room: how it begins as far as there is room, and how it ends always. */
export function Name({ text, className }: { text: string; className?: string }) {
  if (text.length <= LONG) return <span className={clsx("block truncate", className)}>{text}</span>;
  const letters = [...text];
  const tail = letters.splice(-TAIL).join("");
  return (
    <span className={clsx("flex min-w-0", className)}>
      <span className="truncate whitespace-pre">{letters.join("")}</span>
      <span className="shrink-0 whitespace-pre">{tail}</span>
    </span>
  );
}
