import { useEffect, useReducer, useRef, useState } from "react";
import type { Input, Layout } from "./layout";
import { type Graph, layoutInput } from "./model";

type Request = { resolve: (layout: Layout) => void; reject: (error: Error) => void };

let worker: Worker | null = null;
let count = 0;
const requests = new Map<number, Request>();
const known = new Map<string, Layout>();
const KEPT = 20;

function start(): Worker {
  const started = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  started.onmessage = (event: MessageEvent<{ id: number; layout: Layout }>) => {
    requests.get(event.data.id)?.resolve(event.data.layout);
    requests.delete(event.data.id);
  };
  // It could not be loaded, or failed: all that wait are told, and whoever asks next gets a new one.
  started.onerror = (event) => {
    worker = null;
    started.terminate();
    for (const request of requests.values()) {
      request.reject(new Error(`The graph could not be laid out. ${event.message ?? ""}`));
    }
    requests.clear();
  };
  return started;
}

function lay(input: Input): Promise<Layout> {
  worker ??= start();
  const id = ++count;
  // How many layouts this tab has asked for: a change of status asks for none.
  document.documentElement.dataset.layouts = String(count);
  return new Promise((resolve, reject) => {
    requests.set(id, { resolve, reject });
    worker!.postMessage({ id, input });
  });
}

export type Drawn = { graph: Graph; layout: Layout };

/**
 * A graph with its layout; null until there is one. Graphs of the same topology are laid out once. While a new topology is laid
 * out, the graph before stays with its own layout, so that nothing flashes or moves twice when a group opens.
 */
export function useLaidOut(
  graph: Graph,
  isDown: boolean,
): { drawn: Drawn | null; error: Error | null; retry: () => void } {
  const last = useRef<Drawn | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [tries, retry] = useReducer((before: number) => before + 1, 0);
  const [, render] = useReducer((before: number) => before + 1, 0);
  const topology = `${isDown ? "down" : "right"} ${graph.topology}`;
  useEffect(() => {
    if (known.has(topology)) return;
    let isStale = false;
    lay({ ...layoutInput(graph), isDown }).then(
      (layout) => {
        known.set(topology, layout);
        if (known.size > KEPT) known.delete(known.keys().next().value!);
        if (isStale) return;
        setError(null);
        render();
      },
      (failure: Error) => isStale || setError(failure),
    );
    return () => {
      isStale = true;
    };
  }, [topology, tries]);
  const layout =
    known.get(topology) ??
    (last.current?.graph.topology === graph.topology && last.current.layout.isDown === isDown
      ? last.current.layout
      : undefined);
  if (layout && (last.current?.graph !== graph || last.current.layout !== layout))
    last.current = { graph, layout };
  return { drawn: last.current, error, retry };
}
