import { type ReactNode, useEffect } from "react";

/** The head of a page: its title, which the tab has too, and what can be done. */
export function PageHead({
  title,
  note,
  children,
}: {
  title: string;
  note?: ReactNode;
  children?: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · Stepwell`;
  }, [title]);
  return (
    <div className="flex flex-wrap items-center gap-2 bg-paper px-4 pt-4 pb-3">
      <h1 className="text-lg font-semibold tracking-tight">{title}</h1>
      {note && <span className="text-[13px] text-ink-3">{note}</span>}
      <span className="flex-1" />
      {children}
    </div>
  );
}

export function Card({
  title,
  aside,
  children,
  className,
}: {
  title?: ReactNode;
  aside?: ReactNode;
  children: ReactNode;
  className?: string;
}) {
  return (
    <section className={`overflow-hidden rounded-xl border border-line bg-paper ${className ?? ""}`}>
      {title && (
        <header className="flex items-center gap-2 border-b border-line px-4 py-2.5">
          <h2 className="text-[13px] font-semibold">{title}</h2>
          <span className="flex-1" />
          {aside}
        </header>
      )}
      {children}
    </section>
  );
}
