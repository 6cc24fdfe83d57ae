import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Zap } from "lucide-react";
import { triggersQuery } from "@/api/queries";
import { PageHead } from "@/ui/page";
import { type Column, Rows } from "@/ui/rows";
import { Empty, Failure, Loading } from "@/ui/states";
import { Time } from "@/ui/time";
import { TriggerDialog } from "./dialog";
import { type Trigger, whenOf, workflowOf } from "./when";

const COLUMNS: Column<Trigger>[] = [
  {
    name: "Trigger",
    width: "minmax(0,1.3fr)",
    cell: (each) => (
      <>
        <span className="block truncate font-medium">{each.name}</span>
        <code className="block truncate font-mono text-2xs text-ink-3 md:hidden">{whenOf(each)}</code>
      </>
    ),
  },
  {
    name: "Fires on",
    width: "minmax(0,1.5fr)",
    wideOnly: true,
    cell: (each) => <code className="font-mono text-xs">{whenOf(each)}</code>,
  },
  {
    name: "Starts",
    width: "minmax(0,1fr)",
    wideOnly: true,
    cell: (each) => (
      <Link to="/workflows/$name" params={{ name: workflowOf(each) }} className="hover:underline">
        {workflowOf(each)}
      </Link>
    ),
  },
  {
    name: "Next",
    width: "7rem",
    cell: (each) =>
      each.paused ? (
        <span className="text-warn">paused</span>
      ) : each.next[0] ? (
        <Time at={each.next[0]} />
      ) : (
        <span className="text-ink-3">on its event</span>
      ),
  },
  { name: "Last", width: "6rem", wideOnly: true, cell: (each) => <Time at={each.last?.time} /> },
  { name: "Fired", width: "3rem", align: "right", cell: (each) => each.fired.toLocaleString() },
  {
    name: "",
    width: "5rem",
    wideOnly: true,
    cell: (each) =>
      each.error ? <span className="text-danger">failed</span> : each.waiting ? `${each.waiting} wait` : "",
  },
];

export function TriggersPage() {
  const { name } = useSearch({ from: "/triggers" });
  const navigate = useNavigate({ from: "/triggers" });
  const { data, error, isPending, refetch } = useQuery(triggersQuery);
  const chosen = data?.find((each) => each.name === name);
  const broken = data?.filter((each) => each.error).length ?? 0;
  return (
    <>
      <PageHead title="Triggers" note={broken ? `${broken} could not start a run` : undefined} />
      {error && <Failure error={error} retry={() => void refetch()} />}
      {isPending ? (
        <Loading />
      ) : !data ? null : data.length === 0 ? (
        <Empty title="No triggers" icon={<Zap size={26} strokeWidth={1.5} />}>
          Schedules, webhooks, ended runs and states start runs. Declare them with a workflow, or{" "}
          <code className="font-mono text-xs">stepwell trigger add</code>.
        </Empty>
      ) : (
        <Rows
          rows={data}
          columns={COLUMNS}
          keyOf={(each) => each.name}
          label="Triggers"
          height={48}
          onOpen={(each) => void navigate({ search: { name: each.name } })}
        />
      )}
      {chosen && <TriggerDialog trigger={chosen} onClose={() => void navigate({ search: {} })} />}
    </>
  );
}
