import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Workflow as Icon } from "lucide-react";
import type { Schemas } from "@/api/client";
import { workersQuery, workflowsQuery } from "@/api/queries";
import { SearchField } from "@/ui/fields";
import { PageHead } from "@/ui/page";
import { type Column, Rows } from "@/ui/rows";
import { Empty, Failure, Loading } from "@/ui/states";
import { Time } from "@/ui/time";

type Workflow = Schemas["WorkflowRecord"];

export function WorkflowsPage() {
  const { q = "" } = useSearch({ from: "/workflows" });
  const navigate = useNavigate({ from: "/workflows" });
  const { data, error, isPending, refetch } = useQuery(workflowsQuery);
  const workers = useQuery(workersQuery);
  const alive = (workers.data ?? []).filter((each) => each.alive);
  const serving = (name: string) =>
    alive.filter((each) => each.serves.some((one) => one.workflow === name)).length;
  const rows = (data ?? []).filter((each) => each.name.toLowerCase().includes(q.toLowerCase()));
  const columns: Column<Workflow>[] = [
    {
      name: "Workflow",
      width: "minmax(0,2fr)",
      cell: (each) => (
        <Link to="/workflows/$name" params={{ name: each.name }} className="font-medium hover:underline">
          {each.name}
        </Link>
      ),
    },
    { name: "Kind", width: "6rem", cell: (each) => <span className="text-ink-2">{each.kind}</span> },
    {
      name: "Version",
      width: "6rem",
      wideOnly: true,
      cell: (each) => (
        <span className="text-ink-2">
          {each.version === null ? each.digest.slice(0, 8) : `${each.version} of ${each.versions}`}
        </span>
      ),
    },
    {
      name: "Workers",
      width: "10rem",
      wideOnly: true,
      cell: (each) => {
        if (!workers.data) return "";
        const count = each.kind === "class" ? serving(each.name) : alive.length;
        if (count === 0) return <span className="text-warn">none serves it</span>;
        return <span className="text-ink-2">{each.kind === "class" ? count.toLocaleString() : "any"}</span>;
      },
    },
    { name: "Saved", width: "6rem", align: "right", cell: (each) => <Time at={each.saved_at} /> },
  ];
  return (
    <>
      <PageHead title="Workflows" note={data?.length.toLocaleString()} />
      <div className="flex border-b border-line bg-paper px-4 pb-3">
        <SearchField
          value={q}
          onChange={(text) => void navigate({ search: text ? { q: text } : {}, replace: true })}
          placeholder="Search workflows"
          wait={80}
        />
      </div>
      {error && <Failure error={error} retry={() => void refetch()} />}
      {isPending ? (
        <Loading />
      ) : !data ? null : rows.length === 0 ? (
        <Empty
          title={q ? "No workflow is called so" : "No workflows yet"}
          icon={<Icon size={26} strokeWidth={1.5} />}
        >
          {!q && (
            <>
              A worker that has classes makes them known; documents are saved with{" "}
              <code className="font-mono text-xs">stepwell save FILE</code>.
            </>
          )}
        </Empty>
      ) : (
        <Rows
          rows={rows}
          columns={columns}
          keyOf={(each) => each.name}
          label="Workflows"
          onOpen={(each) => void navigate({ to: "/workflows/$name", params: { name: each.name } })}
        />
      )}
    </>
  );
}
