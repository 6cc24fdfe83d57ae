import { useEffect, useState } from "react";
import type { Input, Layout } from "./layout";

let worker: Worker | null = null;
let count = 0;
const waiting = new Map<number, (layout: Layout) => void>();
const known = new Map<string, Layout>();
const KEPT = 20;

/** How many layouts were made by this tab: a change of status makes none. */
export const layouts = { made: 0 };

function lay(input: Input): Promise<Layout> {
  if (worker === null) {
    worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.onmessage = (event: MessageEvent<{ id: number; layout: Layout }>) => {
      waiting.get(event.data.id)?.(event.data.layout);
      waiting.delete(event.data.id);
    };
  }
  const id = ++count;
  layouts.made = count;
  document.documentElement.dataset.layouts = String(count);
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    worker!.postMessage({ id, input });
  });
}

/** The layout of a graph; `topology` names what it depends on, so that the same is laid out once. Null until it is there. */
export function useLayout(topology: string | null, input: () => Input): Layout | null {
  const [made, setMade] = useState<{ topology: string; layout: Layout } | null>(null);
  useEffect(() => {
    if (topology === null || known.has(topology)) return;
    let gone = false;
    void lay(input()).then((layout) => {
      known.set(topology, layout);
      if (known.size > KEPT) known.delete(known.keys().next().value!);
      if (!gone) setMade({ topology, layout });
    });
    return () => {
      gone = true;
    };
  }, [topology]);
  if (topology === null) return null;
  // Until the new one is there, the one before stays: nothing flashes when a group opens.
  return known.get(topology) ?? made?.layout ?? null;
}
