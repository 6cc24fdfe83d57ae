import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { Play, Workflow } from "lucide-react";
import { Dialog as D } from "radix-ui";
import { useDeferredValue, useState } from "react";
import { api, ask } from "@/api/client";
import { workflowsQuery } from "@/api/queries";
import { Failure } from "@/ui/states";
import { Status } from "@/ui/status";
import { usePages } from "./pages";

const item =
  "flex cursor-pointer items-center gap-2.5 rounded-md px-2.5 py-2 text-[13px] data-[selected=true]:bg-hover";

const group =
  "[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-2xs [&_[cmdk-group-heading]]:font-medium [&_[cmdk-group-heading]]:text-ink-3";

/** Goes anywhere by a few letters: pages, workflows, and runs, which the server looks for. */
export function Palette({ open, onClose }: { open: boolean; onClose: () => void }) {
  const navigate = useNavigate();
  const allPages = usePages();
  const [text, setText] = useState("");
  const q = useDeferredValue(text.trim());
  const workflows = useQuery({ ...workflowsQuery, enabled: open });
  const runs = useQuery({
    queryKey: ["palette", q],
    queryFn: () => ask(api.GET("/api/v1/runs", { params: { query: { q: q || undefined, limit: 6 } } })),
    enabled: open,
    placeholderData: keepPreviousData,
  });
  const go = (action: () => void) => () => {
    onClose();
    setText("");
    action();
  };
  const matches = (name: string) => name.toLowerCase().includes(q.toLowerCase());
  const pages = allPages.filter((page) => matches(page.label));
  const names = (workflows.data ?? [])
    .map((each) => each.name)
    .filter(matches)
    .slice(0, 6);
  const failure = runs.error ?? workflows.error;
  return (
    <D.Root open={open} onOpenChange={(now) => !now && onClose()}>
      <D.Portal>
        <D.Overlay className="fixed inset-0 z-40 bg-black/45" />
        <D.Content
          aria-describedby={undefined}
          className="fixed top-[12vh] left-1/2 z-50 w-[calc(100vw-1.5rem)] max-w-xl -translate-x-1/2 overflow-hidden rounded-xl border border-line bg-raised shadow-pop"
        >
          <D.Title className="sr-only">Go to</D.Title>
          <Command shouldFilter={false} label="Go to">
            <Command.Input
              value={text}
              onValueChange={setText}
              placeholder="A page, a workflow, or part of a run's id or tags"
              className="h-12 w-full border-b border-line bg-transparent px-4 outline-none placeholder:text-ink-3"
            />
            <Command.List className="max-h-[50vh] overflow-auto p-1.5">
              {failure ? (
                <Failure error={failure} className="m-2!" />
              ) : (
                <Command.Empty className="p-6 text-center text-[13px] text-ink-2">
                  {runs.isPending ? "Searching…" : "Nothing has this in its name, id or tags."}
                </Command.Empty>
              )}
              {pages.length > 0 && (
                <Command.Group heading="Pages" className={group}>
                  {pages.map((page) => (
                    <Command.Item
                      key={page.to}
                      value={page.to}
                      className={item}
                      onSelect={go(() => void navigate({ to: page.to }))}
                    >
                      <page.icon size={15} className="text-ink-3" />
                      {page.label}
                    </Command.Item>
                  ))}
                </Command.Group>
              )}
              {names.length > 0 && (
                <Command.Group heading="Workflows" className={group}>
                  {names.map((name) => (
                    <Command.Item
                      key={name}
                      value={`workflow ${name}`}
                      className={item}
                      onSelect={go(() => void navigate({ to: "/workflows/$name", params: { name } }))}
                    >
                      <Workflow size={15} className="text-ink-3" />
                      <span className="truncate">{name}</span>
                    </Command.Item>
                  ))}
                </Command.Group>
              )}
              {runs.data && runs.data.items.length > 0 && (
                <Command.Group heading="Runs" className={group}>
                  {runs.data.items.map((run) => (
                    <Command.Item
                      key={run.id}
                      value={`run ${run.id}`}
                      className={item}
                      onSelect={go(() => void navigate({ to: "/runs/$runId", params: { runId: run.id } }))}
                    >
                      <Play size={15} className="shrink-0 text-ink-3" />
                      <span className="max-w-1/2 shrink-0 truncate">{run.workflow}</span>
                      <span className="min-w-0 flex-1 truncate font-mono text-xs text-ink-3">{run.id}</span>
                      <Status status={run.status} />
                    </Command.Item>
                  ))}
                </Command.Group>
              )}
            </Command.List>
          </Command>
        </D.Content>
      </D.Portal>
    </D.Root>
  );
}
