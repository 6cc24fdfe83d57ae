import { useSyncExternalStore } from "react";

export type Theme = "light" | "dark" | "system";

const KEY = "stepwell.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const watchers = new Set<() => void>();

export const chosenTheme = (): Theme => (localStorage.getItem(KEY) as Theme | null) ?? "system";

export function applyTheme() {
  const chosen = chosenTheme();
  const dark = chosen === "dark" || (chosen === "system" && system.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  for (const watcher of watchers) watcher();
}

export function chooseTheme(theme: Theme) {
  localStorage.setItem(KEY, theme);
  applyTheme();
}

system.addEventListener("change", applyTheme);

export const useTheme = () =>
  useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => document.documentElement.dataset.theme as "light" | "dark",
  );
