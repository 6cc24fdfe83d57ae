import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Play } from "lucide-react";
import { useMemo } from "react";
import { ApiError, api, ask } from "@/api/client";
import { conditionWords } from "@/api/reasons";
import { type GraphRecord, readGraph } from "@/graph/model";
import { GraphView } from "@/graph/view";
import { useSession } from "@/shell/session";
import { Button } from "@/ui/button";
import { Id } from "@/ui/copy";
import { Segments } from "@/ui/fields";
import { PageHead } from "@/ui/page";
import { Empty, Failure, Loading } from "@/ui/states";
import { Recent } from "./recent";
import { Start } from "./start";
import { Starters } from "./starters";
import { Versions } from "./versions";

const TABS = [
  { value: "graph", label: "Graph" },
  { value: "start", label: "Start" },
  { value: "runs", label: "Runs" },
  { value: "versions", label: "Versions" },
] as const;

export function WorkflowPage() {
  const { name } = useParams({ from: "/workflows/$name" });
  const search = useSearch({ from: "/workflows/$name" });
  const navigate = useNavigate({ from: "/workflows/$name" });
  const { may } = useSession();
  const tab = search.tab ?? "graph";
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ["workflow", name, search.version],
    queryFn: () =>
      ask(
        api.GET("/api/v1/workflows/{name}", {
          params: { path: { name }, query: { version: search.version } },
        }),
      ),
  });
  if (isPending) return <Loading />;
  if (error instanceof ApiError && error.status === 404) return <Unknown name={name} error={error} />;
  if (error) return <Failure error={error} retry={() => void refetch()} />;
  const isStartable = may("run") && data.kind !== "pipeline";
  const tabs = TABS.filter(
    ({ value }) => (value !== "versions" || data.kind !== "class") && (value !== "start" || isStartable),
  );
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <PageHead title={data.name} note={data.kind}>
        {isStartable && (
          <Button
            look="primary"
            small
            icon={<Play size={13} />}
            onClick={() => void navigate({ search: (now) => ({ ...now, tab: "start" }) })}
          >
            Start
          </Button>
        )}
      </PageHead>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2 border-b border-line bg-paper px-4 pb-2.5 text-xs text-ink-2">
        <Segments
          label="About the workflow"
          value={tab}
          onChange={(next) => void navigate({ search: (now) => ({ ...now, tab: next }), replace: true })}
          options={tabs}
        />
        {data.version !== null && (
          <span>
            version {data.version} of {data.versions}
            {!data.active && " (not the active one)"}
          </span>
        )}
        <Id text={data.digest.slice(0, 16)} />
        {data.target && <span className="font-mono">{data.target}</span>}
        <Link to="/runs" search={{ workflow: name }} className="text-accent hover:underline">
          All of its runs
        </Link>
      </div>
      {data.description && (
        <p className="border-b border-line bg-paper px-4 py-2 text-[13px] text-ink-2">{data.description}</p>
      )}
      <Starters name={name} />
      {tab === "graph" && <WorkflowGraph name={name} version={search.version} />}
      {tab === "start" && <Start workflow={data} from={search.from} />}
      {tab === "runs" && <Recent name={name} />}
      {tab === "versions" && <Versions workflow={data} />}
    </div>
  );
}

/** Runs may be of a workflow that was never stored, or whose code no worker has at the moment. */
function Unknown({ name, error }: { name: string; error: ApiError }) {
  return (
    <>
      <PageHead title={name} />
      <Empty title="No worker and no document has this workflow">
        <p className="mb-3 break-words">{error.message}</p>
        <Link to="/runs" search={{ workflow: name }} className="text-accent underline">
          Its runs
        </Link>
      </Empty>
    </>
  );
}

const NONE: string[] = [];

function WorkflowGraph({ name, version }: { name: string; version: number | undefined }) {
  const { node = null, open = NONE } = useSearch({ from: "/workflows/$name" });
  const navigate = useNavigate({ from: "/workflows/$name" });
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ["workflow graph", name, version, open.join(",")],
    queryFn: () =>
      ask(
        api.GET("/api/v1/workflows/{name}/graph", {
          params: { path: { name }, query: { version, open } },
        }),
      ) as Promise<GraphRecord>,
    placeholderData: (before) => before,
  });
  const graph = useMemo(() => (data ? readGraph(data) : null), [data]);
  if (isPending) return <Loading />;
  if (error) return <Failure error={error} retry={() => void refetch()} />;
  if (!graph || graph.items.length === 0) return <Empty title="It has no nodes" />;
  return (
    <div className="flex min-h-80 flex-1 flex-col">
      <GraphView
        graph={graph}
        selected={node}
        onSelect={(next) =>
          void navigate({ search: (now) => ({ ...now, node: next ?? undefined }), replace: true })
        }
        onToggle={(group) => {
          const next = open.includes(group) ? open.filter((each) => each !== group) : [...open, group];
          void navigate({
            search: (now) => ({ ...now, open: next.length ? next : undefined }),
            replace: true,
          });
        }}
        noteOf={(each) =>
          each.condition ? `if ${conditionWords(each.condition)}` : (data?.nodes.jobs[each.key] ?? null)
        }
        label={`Graph of ${name}`}
      />
    </div>
  );
}
