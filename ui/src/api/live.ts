/**
 * The one stream of events of this tab. Browsers allow six connections to a server, so a tab has at most one, and none while it is
 * hidden: it goes on where it was when the tab is looked at again.
 */

import { useEffect, useRef, useSyncExternalStore } from "react";
import { API, api } from "./client";
import { pace } from "./pace";

export type LiveState = "idle" | "connecting" | "live" | "away" | "signed out";

type Listener = {
  path: string;
  kinds: readonly string[];
  /** Where the stream goes on: what has been received up to there. */
  place: string | null;
  receive: (kind: string, data: unknown) => void;
};

const RETRY = [1_000, 2_000, 4_000, 8_000];

class Live {
  private listeners: Listener[] = [];
  private source: EventSource | null = null;
  private failures = 0;
  private timer = 0;
  private watchers = new Set<() => void>();
  state: LiveState = "idle";

  constructor() {
    document.addEventListener("visibilitychange", () => this.reopen());
  }

  /** Follow a stream until the function that is returned is called. The page that asked last has the stream. */
  follow(listener: Listener): () => void {
    this.listeners.push(listener);
    this.reopen();
    return () => {
      this.listeners = this.listeners.filter((each) => each !== listener);
      this.reopen();
    };
  }

  watch = (watcher: () => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  reopen() {
    this.close();
    const listener = this.listeners.at(-1);
    if (listener === undefined || document.hidden) return this.set("idle");
    this.set("connecting");
    const after =
      listener.place === null ? "" : `${listener.path.includes("?") ? "&" : "?"}after=${listener.place}`;
    const source = new EventSource(`${API}${listener.path}${after}`);
    this.source = source;
    source.onopen = () => {
      this.failures = 0;
      this.set("live");
    };
    for (const kind of listener.kinds) {
      source.addEventListener(kind, (event) => {
        if (event.lastEventId) listener.place = event.lastEventId;
        if (kind === "reset") listener.place = null;
        listener.receive(kind, JSON.parse(event.data));
      });
    }
    source.onerror = () => this.failed(source);
  }

  /** A stream does not tell why it ended: ask who we are, and go on or say that the session has ended. */
  private async failed(source: EventSource) {
    if (source !== this.source) return;
    this.close();
    this.set("away");
    const status = await api.GET("/api/v1/session").then(
      (answer) => answer.response.status,
      () => 0,
    );
    if (this.source !== null) return;
    if (status === 401) {
      this.set("signed out");
      return;
    }
    const wait = RETRY[Math.min(this.failures, RETRY.length - 1)]!;
    this.failures += 1;
    this.timer = window.setTimeout(() => this.reopen(), wait * (0.75 + Math.random() / 2));
  }

  private close() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  private set(state: LiveState) {
    if (state === this.state) return;
    this.state = state;
    for (const watcher of this.watchers) watcher();
  }
}

export const live = new Live();

export const useLiveState = () => useSyncExternalStore(live.watch, () => live.state);

/** Milliseconds between two batches; and what a batch waits for others that come with it. */
const BATCH = 300;
const TOGETHER = 20;

/**
 * Receive the events of a stream, in batches: at once where nothing happened before, otherwise thrice a second, together with the
 * answers that come then. `after` is where it begins; null `path`: no stream.
 */
export function useStream(
  path: string | null,
  kinds: readonly string[],
  after: string | number | null,
  receive: (events: { kind: string; data: unknown }[]) => void,
) {
  const latest = useRef(receive);
  latest.current = receive;
  const named = kinds.join(" ");
  useEffect(() => {
    if (path === null) return;
    let waiting: { kind: string; data: unknown }[] = [];
    let timer = 0;
    let last = 0;
    let isOver = false;
    const flush = () => {
      if (isOver) return;
      timer = 0;
      last = performance.now();
      const batch = waiting;
      waiting = [];
      latest.current(batch);
    };
    const stop = live.follow({
      path,
      kinds: named.split(" "),
      place: after === null ? null : String(after),
      receive: (kind, data) => {
        waiting.push({ kind, data });
        timer ||= window.setTimeout(() => pace(flush), Math.max(TOGETHER, last + BATCH - performance.now()));
      },
    });
    return () => {
      stop();
      isOver = true;
      clearTimeout(timer);
    };
  }, [path, named]);
}
