import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import clsx from "clsx";
import { type LucideIcon, Play, Workflow } from "lucide-react";
import { Dialog as D } from "radix-ui";
import { type KeyboardEvent, type ReactNode, useDeferredValue, useEffect, useId, useState } from "react";
import { api, ask } from "@/api/client";
import { workflowsQuery } from "@/api/queries";
import { useFocusReturn } from "@/ui/overlays";
import { Failure } from "@/ui/states";
import { Status } from "@/ui/status";
import { usePages } from "./pages";

type Place = { key: string; icon: LucideIcon; label: ReactNode; go: () => void };
type Group = {
  title: string;
  places: Place[];
  /** What was found for an earlier text: shown until the answer is there, and nowhere to go to. */
  isOld?: boolean;
};

const SHOWN = 6;
const optionId = (list: string, key: string) => `${list}${encodeURIComponent(key)}`;

/** Goes anywhere by a few letters: pages, workflows, and runs, which the server looks for. */
export function Palette({ open, onClose }: { open: boolean; onClose: () => void }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState<string>();
  // Enter was pressed before it was known where it leads.
  const [isEntered, setEntered] = useState(false);
  const { groups, isSearching, error } = usePlaces(text.trim(), open);
  const places = groups.flatMap((group) => (group.isOld ? [] : group.places));
  const active = places.find((place) => place.key === chosen) ?? places[0];
  const focus = useFocusReturn();
  const id = useId();
  const activeId = active && optionId(id, active.key);

  const close = () => {
    setEntered(false);
    onClose();
  };
  const go = (place: Place) => {
    close();
    setText("");
    setChosen(undefined);
    place.go();
  };
  const write = (next: string) => {
    setText(next);
    setChosen(undefined);
    setEntered(false);
  };
  useEffect(() => {
    if (!isEntered || isSearching) return;
    setEntered(false);
    if (active) go(active);
  });
  useEffect(() => {
    if (activeId) document.getElementById(activeId)?.scrollIntoView({ block: "nearest" });
  }, [activeId]);

  const keyed = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const isOpener = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
    if (step === undefined && event.key !== "Enter" && !isOpener) return;
    event.preventDefault(); // browsers would go to their own box for Ctrl+K
    if (step !== undefined && active) {
      const next = places.indexOf(active) + step;
      setChosen(places[Math.max(0, Math.min(places.length - 1, next))]!.key);
    }
    if (event.key !== "Enter") return;
    if (active) go(active);
    else setEntered(isSearching);
  };
  return (
    <D.Root open={open} onOpenChange={(now) => !now && close()}>
      <D.Portal>
        <D.Overlay className="fixed inset-0 z-40 bg-black/45" />
        <D.Content
          aria-describedby={undefined}
          className="fixed top-[12vh] left-1/2 z-50 w-[calc(100vw-1.5rem)] max-w-xl -translate-x-1/2 overflow-hidden rounded-xl border border-line bg-raised shadow-pop"
          {...focus}
        >
          <D.Title className="sr-only">Go to</D.Title>
          <input
            data-autofocus
            role="combobox"
            aria-label="Go to"
            aria-expanded
            aria-controls={id}
            aria-autocomplete="list"
            aria-activedescendant={activeId}
            autoComplete="off"
            autoCorrect="off"
            spellCheck={false}
            value={text}
            onChange={(event) => write(event.target.value)}
            onKeyDown={keyed}
            placeholder="A page, a workflow, or part of a run's id or tags"
            className="h-12 w-full border-b border-line bg-transparent px-4 outline-none placeholder:text-ink-3"
          />
          <div className="max-h-[50vh] overflow-auto p-1.5">
            {error && <Failure error={error} className="m-2!" />}
            {!error && places.length === 0 && (
              <p className="p-6 text-center text-[13px] text-ink-2">
                {isSearching ? "Searching…" : "Nothing has this in its name, id or tags."}
              </p>
            )}
            <div id={id} role="listbox" aria-label="Places" aria-busy={isSearching || undefined}>
              {groups.map((group) => (
                <Places
                  key={group.title}
                  id={id}
                  group={group}
                  active={active?.key}
                  onChoose={(place) => setChosen(place.key)}
                  onGo={go}
                />
              ))}
            </div>
          </div>
        </D.Content>
      </D.Portal>
    </D.Root>
  );
}

type PlacesProps = {
  id: string;
  group: Group;
  active: string | undefined;
  onChoose: (place: Place) => void;
  onGo: (place: Place) => void;
};

function Places({ id, group, active, onChoose, onGo }: PlacesProps) {
  if (group.places.length === 0) return null;
  return (
    <div role="group" aria-label={group.title}>
      <p aria-hidden className="px-2.5 pt-2 pb-1 text-2xs font-medium text-ink-3">
        {group.title}
      </p>
      {group.places.map((place) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the box has the keys
        <div
          key={place.key}
          id={optionId(id, place.key)}
          role="option"
          tabIndex={-1}
          aria-selected={place.key === active}
          aria-disabled={group.isOld || undefined}
          onPointerMove={() => !group.isOld && onChoose(place)}
          onClick={() => !group.isOld && onGo(place)}
          className={clsx(
            "flex items-center gap-2.5 rounded-md px-2.5 py-2 text-[13px]",
            group.isOld ? "opacity-45" : "cursor-pointer",
            place.key === active && "bg-hover",
          )}
        >
          <place.icon size={15} className="shrink-0 text-ink-3" />
          {place.label}
        </div>
      ))}
    </div>
  );
}

/** Where one may go with this text. Pages are there at once, the rest comes, and keeps its order: runs are not there before workflows. */
function usePlaces(text: string, open: boolean) {
  const navigate = useNavigate();
  const allPages = usePages();
  const workflows = useQuery({ ...workflowsQuery, enabled: open });
  const asked = useDeferredValue(text);
  const runs = useQuery({
    queryKey: ["palette", asked],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs", { params: { query: { q: asked || undefined, limit: SHOWN } }, signal })),
    enabled: open,
    placeholderData: keepPreviousData,
  });
  const isOld = workflows.isPending || asked !== text || runs.isPlaceholderData;
  const matches = (name: string) => name.toLowerCase().includes(text.toLowerCase());
  const pages = allPages
    .filter((page) => matches(page.label))
    .map((page) => ({
      key: page.to,
      icon: page.icon,
      label: page.label,
      go: () => void navigate({ to: page.to }),
    }));
  const named = (workflows.data ?? [])
    .filter(({ name }) => matches(name))
    .slice(0, SHOWN)
    .map(({ name }) => ({
      key: `workflow ${name}`,
      icon: Workflow,
      label: <span className="truncate">{name}</span>,
      go: () => void navigate({ to: "/workflows/$name", params: { name } }),
    }));
  const found = (runs.data?.items ?? []).map((run) => ({
    key: `run ${run.id}`,
    icon: Play,
    label: (
      <>
        <span className="max-w-1/2 shrink-0 truncate">{run.workflow}</span>
        <span className="min-w-0 flex-1 truncate font-mono text-xs text-ink-3">{run.id}</span>
        <Status status={run.status} />
      </>
    ),
    go: () => void navigate({ to: "/runs/$runId", params: { runId: run.id } }),
  }));
  const groups: Group[] = [
    { title: "Pages", places: pages },
    { title: "Workflows", places: named },
    { title: "Runs", places: found, isOld },
  ];
  return { groups, isSearching: isOld || runs.isPending, error: runs.error ?? workflows.error };
}
