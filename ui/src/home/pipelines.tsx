import { useInfiniteQuery, useQueries, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { api, ask, type Schemas } from "@/api/client";
import { Button } from "@/ui/button";
import { Command } from "@/ui/copy";
import { Dialog } from "@/ui/overlays";
import { Card } from "@/ui/page";
import { Empty, Failure, Loading } from "@/ui/states";
import { Time } from "@/ui/time";

type State = Schemas["StateRecord"];
type Detail = Schemas["PipelineDetail"];

/** What may be the matter with states, the worst first, each with the colour of a status of nodes. */
const STATUSES = {
  failed: "FAILED",
  blocked: "UPSTREAM_FAILED",
  stale: "WAITING",
  waiting: "PENDING",
  unrecorded: "PENDING",
  orphan: "CANCELLED",
} as const;
type Status = keyof typeof STATUSES;

export const STATE_STATUSES = Object.keys(STATUSES) as Status[];

const INTERVAL = 30_000;

/** The pipelines of this server: how many of their states need to be made again. Nothing where there are none. */
export function Pipelines() {
  const { pipeline, states } = useSearch({ from: "/" });
  const navigate = useNavigate({ from: "/" });
  const known = useQuery({
    queryKey: ["pipelines"],
    queryFn: () => ask(api.GET("/api/v1/pipelines")),
    staleTime: 300_000,
  });
  const details = useQueries({
    queries: (known.data ?? []).map(({ name }) => ({
      queryKey: ["pipeline", name],
      queryFn: () => ask(api.GET("/api/v1/pipelines/{name}/status", { params: { path: { name } } })),
      refetchInterval: INTERVAL,
    })),
  });
  if (known.error) return <Failure error={known.error} className="m-0!" />;
  if (!known.data?.length) return null;
  return (
    <Card title="Pipelines">
      <ul className="divide-y divide-line">
        {known.data.map(({ name }, index) => (
          <li key={name} className="flex flex-wrap items-center gap-x-4 gap-y-1.5 px-4 py-2.5 text-[13px]">
            <span className="min-w-32 font-medium">{name}</span>
            <Counts
              detail={details[index]?.data}
              error={details[index]?.error}
              onChoose={(status) => void navigate({ search: { pipeline: name, states: status } })}
            />
          </li>
        ))}
      </ul>
      {pipeline && states && (
        <States pipeline={pipeline} status={states} onClose={() => void navigate({ search: {} })} />
      )}
    </Card>
  );
}

type CountsProps = {
  detail: Detail | undefined;
  error: Error | null | undefined;
  onChoose: (status: Status) => void;
};

function Counts({ detail, error, onChoose }: CountsProps) {
  if (error) return <span className="text-danger">{error.message}</span>;
  if (!detail) return <span className="text-ink-3">Looking…</span>;
  const shown = STATE_STATUSES.filter((status) => detail[status] > 0);
  return (
    <>
      {shown.length === 0 && (
        <span data-status="COMPLETED" className="text-[var(--st)]">
          ✓ everything is fresh
        </span>
      )}
      {shown.map((status) => (
        <button
          key={status}
          type="button"
          data-status={STATUSES[status]}
          className="font-medium text-[var(--st)] hover:underline"
          onClick={() => onChoose(status)}
        >
          <span className="tabular">{detail[status].toLocaleString()}</span> {status}
        </button>
      ))}
      <span className="text-ink-3 tabular">{detail.fresh.toLocaleString()} fresh</span>
      {detail.scan?.running && <span className="text-ink-2">a scan is running</span>}
    </>
  );
}

type StatesProps = { pipeline: string; status: Status; onClose: () => void };

/** The states that a number counts, with what made them so. */
function States({ pipeline, status, onClose }: StatesProps) {
  const { data, error, isPending, refetch, hasNextPage, isFetching, fetchNextPage } = useInfiniteQuery({
    queryKey: ["states", pipeline, status],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      ask(
        api.GET("/api/v1/pipelines/{name}/states", {
          params: { path: { name: pipeline }, query: { status, cursor: pageParam } },
        }),
      ),
    getNextPageParam: (page) => page.next ?? undefined,
  });
  const states = data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Dialog
      open
      onClose={onClose}
      wide
      title={`${pipeline}: ${status}`}
      footer={<Command text={`stepwell pipeline status ${pipeline}`} />}
    >
      {isPending ? (
        <Loading rows={4} />
      ) : error ? (
        <Failure error={error} retry={() => void refetch()} className="m-0!" />
      ) : states.length === 0 ? (
        <Empty title={`No state is ${status} now`} />
      ) : (
        <ul className="divide-y divide-line">
          {states.map((each) => (
            <StateRow key={`${each.stage} ${each.entity}`} state={each} />
          ))}
        </ul>
      )}
      {hasNextPage && (
        <Button small disabled={isFetching} onClick={() => void fetchNextPage()} className="my-2">
          More
        </Button>
      )}
    </Dialog>
  );
}

const StateRow = ({ state }: { state: State }) => (
  <li className="py-2 text-[13px]">
    <p className="flex flex-wrap items-baseline gap-x-2">
      <span className="font-medium">{state.stage}</span>
      <span className="break-all text-ink-2">{state.entity}</span>
      {state.due_at && (
        <span className="text-xs text-ink-3">
          due <Time at={state.due_at} />
        </span>
      )}
    </p>
    {state.causes.map((cause) => (
      <p key={`${cause.cause} ${cause.subject}`} className="text-xs break-words text-ink-2">
        {cause.text}
      </p>
    ))}
  </li>
);
