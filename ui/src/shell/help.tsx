import { useNavigate } from "@tanstack/react-router";
import { Dialog } from "@/ui/overlays";
import { useKeys, withMod } from "./keys";
import { usePages } from "./pages";

type Section = [string, [string, string][]];

const KEYS: Section[] = [
  [
    "Everywhere",
    [
      [withMod("K"), "Go to a run, a workflow, a page"],
      ["/", "Search on this page"],
      ["?", "This help"],
    ],
  ],
  [
    "Lists",
    [
      ["↑ ↓ or j k", "Move"],
      ["Home End", "The first and last row"],
      ["Enter", "Open"],
      ["x", "Tick to compare"],
    ],
  ],
  [
    "A run",
    [
      ["1 – 5", "Graph, timeline, table, logs, overview"],
      ["f", "The next failure"],
      ["y", "Why"],
      ["Esc", "Close the panel"],
    ],
  ],
  [
    "Graph",
    [
      ["← ↑ ↓ →", "Along the edges"],
      ["Enter", "Open or close a group"],
      ["+ − 0", "Closer, further away, all of it"],
    ],
  ],
  [
    "Logs",
    [
      ["w", "Wrap lines"],
      ["End", "Follow"],
    ],
  ],
];

export function Help({ open, onClose }: { open: boolean; onClose: () => void }) {
  const navigate = useNavigate();
  const pages = usePages();
  const [everywhere, ...rest] = KEYS;
  const ofPages: Section = ["Pages", pages.map((page) => [`g ${page.key}`, page.label])];
  useKeys({
    "/": () => document.querySelector<HTMLInputElement>("[data-search]")?.focus(),
    ...Object.fromEntries(pages.map((page) => [`g ${page.key}`, () => void navigate({ to: page.to })])),
  });
  return (
    <Dialog open={open} onClose={onClose} title="Keys">
      <div className="grid gap-5 pb-3 sm:grid-cols-2">
        {[everywhere!, ofPages, ...rest].map(([title, keys]) => (
          <section key={title}>
            <h3 className="mb-1 text-2xs font-medium tracking-wide text-ink-3 uppercase">{title}</h3>
            <dl className="space-y-1">
              {keys.map(([key, what]) => (
                <div key={key} className="flex items-center justify-between gap-3 text-[13px]">
                  <dt className="text-ink-2">{what}</dt>
                  <dd className="shrink-0">
                    <kbd className="whitespace-nowrap rounded border border-line-strong bg-canvas px-1.5 font-mono text-2xs">
                      {key}
                    </kbd>
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
