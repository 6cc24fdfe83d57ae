import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

/** What the address keeps, and a way to change a part of it. */
export function useRunSearch() {
  const search = useSearch({ from: "/runs/$runId" });
  const navigate = useNavigate({ from: "/runs/$runId" });
  const change = useCallback(
    (part: { [key in keyof typeof search]?: (typeof search)[key] | undefined }) =>
      void navigate({
        search: (now) =>
          Object.fromEntries(Object.entries({ ...now, ...part }).filter(([, value]) => value !== undefined)),
        replace: !("node" in part || "view" in part),
      }),
    [navigate],
  );
  return { search, change };
}
