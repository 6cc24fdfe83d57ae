import { Bookmark, Trash2 } from "lucide-react";
import { useState } from "react";
import { Button } from "@/ui/button";
import { Field, TextField } from "@/ui/fields";
import { Dialog, Menu } from "@/ui/overlays";
import { asked, type Filter } from "./filter";

type View = { name: string; filter: Filter };

const KEY = "stepwell.views";
const GIVEN: View[] = [
  { name: "Failed", filter: { status: ["FAILED"] } },
  { name: "Waits for a person", filter: { status: ["PAUSED"] } },
  { name: "Active", filter: { status: ["PENDING", "RUNNING", "CANCELLING"] } },
  { name: "Longest", filter: { order: "duration" } },
];

function saved(): View[] {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "[]") as View[];
  } catch {
    return [];
  }
}

/** Filters by name: some that everybody needs, and those that were saved in this browser. An address can be sent to others. */
export function SavedViews({ filter, onChoose }: { filter: Filter; onChoose: (filter: Filter) => void }) {
  const [views, setViews] = useState(saved);
  const [naming, setNaming] = useState<string | null>(null);
  const keep = (next: View[]) => {
    localStorage.setItem(KEY, JSON.stringify(next));
    setViews(next);
  };
  const here = JSON.stringify(asked(filter));
  const current = views.find((view) => JSON.stringify(view.filter) === here);
  return (
    <>
      <Menu
        trigger={
          <Button small icon={<Bookmark size={13} />}>
            Views
          </Button>
        }
        items={[
          ...[...GIVEN, ...views].map((view) => ({
            label: view.name,
            onSelect: () => onChoose(view.filter),
          })),
          null,
          { label: "Save this view…", disabled: here === "{}", onSelect: () => setNaming("") },
          ...(current
            ? [
                {
                  label: `Forget “${current.name}”`,
                  icon: <Trash2 size={13} />,
                  onSelect: () => keep(views.filter((view) => view !== current)),
                },
              ]
            : []),
        ]}
      />
      <Dialog
        open={naming !== null}
        onClose={() => setNaming(null)}
        title="Save this view"
        description="In this browser. Its address shows the same to everybody."
        footer={
          <Button
            look="primary"
            disabled={!naming?.trim()}
            onClick={() => {
              const name = naming!.trim();
              keep([...views.filter((view) => view.name !== name), { name, filter: asked(filter) }]);
              setNaming(null);
            }}
          >
            Save
          </Button>
        }
      >
        <Field label="Name">
          <TextField
            data-autofocus
            value={naming ?? ""}
            onChange={(event) => setNaming(event.target.value)}
          />
        </Field>
      </Dialog>
    </>
  );
}
