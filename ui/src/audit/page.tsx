import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { ScrollText } from "lucide-react";
import { api, ask } from "@/api/client";
import { SearchField, Select } from "@/ui/fields";
import { PageHead } from "@/ui/page";
import { type Column, Rows } from "@/ui/rows";
import { Empty, Failure, Loading } from "@/ui/states";
import { Time } from "@/ui/time";
import { type Entry, What, Who } from "./entries";
import { ACTIONS, SINCE, type Since } from "./search";

const PAGE = 100;
const HOUR = 3_600_000;
const HOURS: Record<Since, number> = { hour: 1, day: 24, week: 168, month: 720 };
const TO = { workflow: "/workflows/$name", trigger: "/triggers" } as const;

const COLUMNS: Column<Entry>[] = [
  { name: "When", width: "4.75rem", cell: (each) => <Time at={each.at} /> },
  { name: "Who", width: "minmax(0,1fr)", wideOnly: true, cell: (each) => <Who entry={each} /> },
  { name: "What", width: "minmax(0,1.4fr)", cell: (each) => <Summary entry={each} /> },
  { name: "Of", width: "minmax(0,1.2fr)", wideOnly: true, cell: (each) => <Target entry={each} /> },
  {
    name: "Reason",
    width: "minmax(0,1.2fr)",
    wideOnly: true,
    cell: (each) => <span title={each.reason ?? undefined}>{each.reason}</span>,
  },
];

/** What was asked for; on a phone also by whom, of what, and why. */
function Summary({ entry }: { entry: Entry }) {
  return (
    <>
      <span className="block truncate">
        <span className="md:hidden">
          <Who entry={entry} />:{" "}
        </span>
        <What entry={entry} />
      </span>
      <span className="block truncate text-xs text-ink-3 md:hidden">
        <Target entry={entry} />
        {entry.reason && `: ${entry.reason}`}
      </span>
    </>
  );
}

function Target({ entry }: { entry: Entry }) {
  const { kind, target } = entry;
  const look = "font-mono text-xs hover:underline";
  return (
    <>
      <span className="text-ink-3">{kind} </span>
      {kind === "run" ? (
        <Link to="/runs/$runId" params={{ runId: target }} className={look}>
          {target}
        </Link>
      ) : kind === "workflow" ? (
        <Link to={TO.workflow} params={{ name: target }} className={look}>
          {target}
        </Link>
      ) : kind === "trigger" ? (
        <Link to={TO.trigger} search={{ name: target }} className={look}>
          {target}
        </Link>
      ) : (
        <span className="font-mono text-xs">{target}</span>
      )}
    </>
  );
}

/** Who asked for which change, when, from where and why. */
export function AuditLogPage() {
  const search = useSearch({ from: "/audit-log" });
  const navigate = useNavigate({ from: "/audit-log" });
  const change = (part: typeof search) =>
    void navigate({ search: (before) => ({ ...before, ...part }), replace: true });
  const { data, error, isPending, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } =
    useInfiniteQuery({
      queryKey: ["audit-log", search],
      initialPageParam: undefined as string | undefined,
      queryFn: ({ pageParam: cursor, signal }) => {
        const { since, ...filter } = search;
        const from = since && new Date(Date.now() - HOURS[since] * HOUR).toISOString();
        const query = { ...filter, since: from, limit: PAGE, cursor };
        return ask(api.GET("/api/v1/audit-log", { params: { query }, signal }));
      },
      getNextPageParam: (page) => page.next ?? undefined,
    });
  const entries = data?.pages.flatMap((page) => page.items) ?? [];
  // A page of a filtered log may be empty although there are more.
  const goOn = hasNextPage && !isFetchingNextPage && !error ? () => void fetchNextPage() : undefined;
  return (
    <>
      <PageHead title="Audit log" note="who asked for which change" />
      <div className="flex flex-wrap gap-2 border-b border-line bg-paper px-4 pb-3">
        <div className="min-w-full flex-1 sm:min-w-48">
          <SearchField
            value={search.run ?? ""}
            onChange={(run) => change({ run: run || undefined })}
            placeholder="Id of a run"
          />
        </div>
        <div className="min-w-full flex-1 sm:min-w-48">
          <SearchField
            value={search.who ?? ""}
            onChange={(who) => change({ who: who || undefined })}
            placeholder="Name, or id of a token"
          />
        </div>
        <Select
          aria-label="Action"
          className="w-auto!"
          value={search.action ?? ""}
          onChange={(event) => change({ action: event.target.value || undefined })}
        >
          <option value="">Any action</option>
          {ACTIONS.map((action) => (
            <option key={action}>{action}</option>
          ))}
        </Select>
        <Select
          aria-label="Since"
          className="w-auto!"
          value={search.since ?? ""}
          onChange={(event) => change({ since: SINCE.find((each) => each === event.target.value) })}
        >
          <option value="">At any time</option>
          {SINCE.map((since) => (
            <option key={since} value={since}>
              In the last {since}
            </option>
          ))}
        </Select>
      </div>
      {isPending ? (
        <Loading />
      ) : error && entries.length === 0 ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : entries.length === 0 && !hasNextPage ? (
        <Empty title="No such entry" icon={<ScrollText size={26} strokeWidth={1.5} />}>
          What people, tokens and triggers ask for is here; not what programs start.
        </Empty>
      ) : entries.length === 0 ? (
        <More goOn={goOn} />
      ) : (
        <Rows rows={entries} columns={COLUMNS} keyOf={(each) => each.id} label="Audit log" onEnd={goOn} />
      )}
    </>
  );
}

/** Nothing of the pages so far fits: the search goes on only if one wants it to. */
function More({ goOn }: { goOn: (() => void) | undefined }) {
  return (
    <Empty title="None of the latest entries fits">
      <button type="button" className="text-accent hover:underline" disabled={!goOn} onClick={goOn}>
        Look further back
      </button>
    </Empty>
  );
}
