import { useQuery } from "@tanstack/react-query";
import { ListFilter, SlidersHorizontal, X } from "lucide-react";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { workflowsQuery } from "@/api/queries";
import { hasEnded, RUN_STATUSES } from "@/api/tables";
import { Button } from "@/ui/button";
import { SearchField, Select, TextField } from "@/ui/fields";
import { Status } from "@/ui/status";
import { exactTime } from "@/ui/time";
import { type Filter, fromLocal, inOrder, ORDERS, toLocal } from "./filter";

type Props = { filter: Filter; change: (part: Partial<Filter>) => void };

/** The filter of the list: what people choose most is always there, the rest one press away. */
export function FilterBar({ filter, change }: Props) {
  const [isOpen, setOpen] = useState(false);
  const workflows = useQuery(workflowsQuery);
  const names = useMemo(() => workflows.data?.map((each) => each.name) ?? [], [workflows.data]);
  return (
    <div className="space-y-2 border-b border-line bg-paper px-4 pb-3">
      <div className="flex flex-wrap items-center gap-2">
        <div className="min-w-full flex-1 sm:min-w-64">
          <SearchField
            value={filter.q ?? ""}
            onChange={(q) => change({ q: q || undefined })}
            placeholder="Search ids, workflows, tags, errors (not payloads)"
            label="Search runs"
          />
        </div>
        <Select
          aria-label="Workflow"
          className="w-auto! min-w-0 flex-1 sm:max-w-48 sm:flex-none"
          value={filter.workflow ?? ""}
          onChange={(event) => change({ workflow: event.target.value || undefined })}
        >
          <option value="">Any workflow</option>
          {filter.workflow && !names.includes(filter.workflow) && <option>{filter.workflow}</option>}
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </Select>
        <Select
          aria-label="Order"
          title="Runs start in the order in which they are created, unless they wait for a worker"
          className="w-auto!"
          value={filter.order ?? ""}
          onChange={(event) =>
            change(
              inOrder(
                filter,
                ORDERS.find((each) => each === event.target.value),
              ),
            )
          }
        >
          <option value="">Last created</option>
          {ORDERS.map((order) => (
            <option key={order} value={order}>
              {{ ended: "Last ended", duration: "Longest" }[order]}
            </option>
          ))}
        </Select>
        <Button
          aria-expanded={isOpen}
          icon={<SlidersHorizontal size={13} />}
          onClick={() => setOpen(!isOpen)}
          className={isOpen ? "bg-hover" : undefined}
        >
          More
        </Button>
      </div>
      {isOpen && <More filter={filter} change={change} />}
      <Chosen filter={filter} change={change} />
    </div>
  );
}

function More({ filter, change }: Props) {
  return (
    <div className="grid grid-cols-2 gap-2 rounded-lg border border-line bg-canvas p-3 md:grid-cols-3 xl:grid-cols-6">
      <Moment label="Created since" value={filter.since} onChange={(since) => change({ since })} />
      <Moment label="Created before" value={filter.until} onChange={(until) => change({ until })} />
      <Typed
        label="Tag"
        placeholder="name=value"
        accept={/^[^=]+=/}
        clears
        onChange={(tag) => tag && change({ tag: [...new Set([...(filter.tag ?? []), tag])] })}
      />
      <Typed
        label="Error class"
        placeholder="TimeoutError"
        value={filter.error}
        onChange={(error) => change({ error })}
      />
      <Typed
        label="Id begins with"
        placeholder="nightly:"
        value={filter.prefix}
        onChange={(prefix) => change({ prefix })}
      />
      <Typed
        label="Forks of"
        placeholder="id of a run"
        value={filter.fork_of}
        onChange={(fork_of) => change({ fork_of })}
      />
    </div>
  );
}

const Labelled = ({ label, children }: { label: string; children: ReactNode }) => (
  // biome-ignore lint/a11y/noLabelWithoutControl: the control is the child
  <label className="min-w-0 space-y-1">
    <span className="block text-2xs font-medium text-ink-3">{label}</span>
    {children}
  </label>
);

type TypedProps = {
  label: string;
  placeholder: string;
  value?: string;
  accept?: RegExp;
  /** The field is empty again once its text counts. */
  clears?: boolean;
  onChange: (text: string | undefined) => void;
};

/** A text that counts with Enter, or when one goes on. */
function Typed({ label, placeholder, value = "", accept, clears, onChange }: TypedProps) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  const take = () => {
    const text = typed.trim();
    if (text === value || (text && accept && !accept.test(text))) return;
    onChange(text || undefined);
    if (clears) setTyped("");
  };
  return (
    <Labelled label={label}>
      <TextField
        value={typed}
        placeholder={placeholder}
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={(event) => event.key === "Enter" && take()}
        onBlur={take}
      />
    </Labelled>
  );
}

function Moment({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string | undefined;
  onChange: (at: string | undefined) => void;
}) {
  return (
    <Labelled label={label}>
      <TextField
        type="datetime-local"
        value={toLocal(value)}
        onChange={(event) => onChange(fromLocal(event.target.value))}
      />
    </Labelled>
  );
}

/** What is chosen: the statuses, always in sight, and the rest as what can be dropped. */
function Chosen({ filter, change }: Props) {
  const toggle = (status: (typeof RUN_STATUSES)[number]) => {
    const now = filter.status ?? [];
    const next = now.includes(status) ? now.filter((each) => each !== status) : [...now, status];
    change({
      status: next.length ? next : undefined,
      order: next.every(hasEnded) ? filter.order : undefined,
    });
  };
  const moment = (at: string) => (Number.isNaN(Date.parse(at)) ? at : exactTime(at));
  const chips: [string | undefined, Partial<Filter>][] = [
    [filter.error && `error ${filter.error}`, { error: undefined }],
    [filter.prefix && `id ${filter.prefix}…`, { prefix: undefined }],
    [filter.fork_of && `fork of ${filter.fork_of}`, { fork_of: undefined }],
    [filter.since && `since ${moment(filter.since)}`, { since: undefined }],
    [filter.until && `before ${moment(filter.until)}`, { until: undefined }],
  ];
  return (
    <div className="flex flex-wrap items-center gap-1.5">
      <ListFilter size={14} className="text-ink-3" aria-hidden />
      {RUN_STATUSES.map((status) => {
        const on = filter.status?.includes(status) ?? false;
        return (
          <button
            key={status}
            type="button"
            aria-pressed={on}
            onClick={() => toggle(status)}
            className={on ? "rounded-full ring-2 ring-[var(--focus)]" : "rounded-full"}
          >
            <Status status={status} />
          </button>
        );
      })}
      {(filter.tag ?? []).map((each) => (
        <Chip
          key={each}
          text={each}
          drop={() => {
            const left = filter.tag?.filter((other) => other !== each);
            change({ tag: left?.length ? left : undefined });
          }}
        />
      ))}
      {chips.map(([text, part]) => text && <Chip key={text} text={text} drop={() => change(part)} />)}
    </div>
  );
}

function Chip({ text, drop }: { text: string; drop: () => void }) {
  return (
    <span className="inline-flex items-center gap-1 rounded-full bg-accent-soft py-px pr-1 pl-2 text-xs text-accent">
      <span className="max-w-60 truncate">{text}</span>
      <button
        type="button"
        aria-label={`Drop ${text}`}
        onClick={drop}
        className="rounded-full p-0.5 hover:bg-hover"
      >
        <X size={11} />
      </button>
    </span>
  );
}
