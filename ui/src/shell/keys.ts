import { useEffect, useRef } from "react";

type Keys = Record<string, (event: KeyboardEvent) => void>;

const mac = navigator.platform.startsWith("Mac");
let prefix = "";
let prefixTimer = 0;

const writes = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));

/** Keys of a page, as in `mod+k`, `?`, or `g r` for one after the other. Not while somebody writes into a field. */
export function useKeys(keys: Keys) {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.altKey) return;
      const mod = mac ? event.metaKey : event.ctrlKey;
      if (!mod && writes(event.target)) return;
      if (document.querySelector('[role="dialog"]') && event.key !== "Escape") return;
      const name = `${mod ? "mod+" : ""}${event.key.length === 1 ? event.key.toLowerCase() : event.key}`;
      const action = latest.current[prefix ? `${prefix} ${name}` : name] ?? latest.current[name];
      if (action) {
        event.preventDefault();
        action(event);
      }
    };
    // Every listener sees the key before the prefix changes.
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
}

window.addEventListener("keyup", (event) => {
  if (writes(event.target) || event.key.length !== 1) return;
  clearTimeout(prefixTimer);
  prefix = event.key === "g" && !prefix ? "g" : "";
  prefixTimer = window.setTimeout(() => {
    prefix = "";
  }, 900);
});
