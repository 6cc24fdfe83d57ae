/**
 * When the page is rendered because of what the server says. Answers, events and clocks come one by one; those that come close together
 * are shown together, so that a page is never rendered more often than it can be read, however much it asks for.
 */

/** Milliseconds between two renderings: at most nine a second. */
const INTERVAL = 120;

/** Calls what it is given at once, but not within `interval` of what it called before: then later, all together. */
export function paceOf(interval: number): (callback: () => void) => void {
  let waiting: (() => void)[] = [];
  let isDue = false;
  let last = Number.NEGATIVE_INFINITY;
  const run = () => {
    isDue = false;
    last = performance.now();
    const callbacks = waiting;
    waiting = [];
    for (const callback of callbacks) callback();
  };
  return (callback) => {
    waiting.push(callback);
    if (isDue) return;
    isDue = true;
    setTimeout(run, Math.max(0, last + interval - performance.now()));
  };
}

export const pace = paceOf(INTERVAL);
