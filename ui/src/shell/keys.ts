import { useEffect, useRef } from "react";
import { keyName } from "./key-name";

type Keys = Record<string, (event: KeyboardEvent) => void>;

const isMac = navigator.platform.startsWith("Mac");
/** How the key that goes with others is written, as in `⌘K` or `Ctrl K`. */
export const withMod = (key: string) => (isMac ? `⌘${key}` : `Ctrl ${key}`);

const PREFIX_TIME = 900;
let prefix = "";
let prefixAt = Number.NEGATIVE_INFINITY;

const writes = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));

/** Keys of a page, as in `mod+k`, `?`, or `g r` for one after the other. Not while somebody writes into a field. */
export function useKeys(keys: Keys) {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const name = event.defaultPrevented ? null : keyName(event, isMac);
      if (name === null || (!name.startsWith("mod+") && writes(event.target))) return;
      if (document.querySelector('[role="dialog"]') && event.key !== "Escape") return;
      const action = latest.current[prefix ? `${prefix} ${name}` : name];
      if (action) {
        event.preventDefault();
        action(event);
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
}

// This listener is the first: what it sets counts for all others that see the same key. The second key counts from when it was
// pressed, and not from when a busy page came to it.
window.addEventListener("keydown", (event) => {
  prefix = event.timeStamp - prefixAt < PREFIX_TIME ? "g" : "";
  const name = writes(event.target) ? null : keyName(event, isMac);
  prefixAt = name === "g" && !prefix ? performance.now() : Number.NEGATIVE_INFINITY;
});
