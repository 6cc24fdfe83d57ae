import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, ask } from "@/api/client";
import { Card } from "@/ui/page";
import { Failure, Loading } from "@/ui/states";

const HOURS = 24;
const HOUR = 3_600_000;

/** How many runs began in each of the last hours, and how many of them failed. */
export function Activity() {
  const first = Math.floor(Date.now() / HOUR) * HOUR - (HOURS - 1) * HOUR;
  const since = new Date(first).toISOString();
  const query = (status?: "FAILED") => ({
    queryKey: ["counts", "hour", since, status ?? ""],
    queryFn: () =>
      ask(
        api.GET("/api/v1/runs/counts", {
          params: { query: { by: "hour", since, status: status ? [status] : undefined } },
        }),
      ),
    refetchInterval: 30_000,
  });
  const all = useQuery(query());
  const failed = useQuery(query("FAILED"));
  if (all.error ?? failed.error) return <Failure error={all.error ?? failed.error} className="m-0!" />;
  const at = (data: typeof all.data, hour: number) =>
    data?.counts.find((each) => Math.abs(Date.parse(each.value) - hour) < HOUR / 2)?.count ?? 0;
  const hours = Array.from({ length: HOURS }, (_, index) => {
    const hour = first + index * HOUR;
    return { hour, all: at(all.data, hour), failed: at(failed.data, hour) };
  });
  const most = Math.max(1, ...hours.map((each) => each.all));
  const total = hours.reduce((sum, each) => sum + each.all, 0);
  const bad = hours.reduce((sum, each) => sum + each.failed, 0);
  const exact = all.data?.exact !== false;
  return (
    <Card
      title="Runs in the last 24 hours"
      aside={
        <span className="text-xs text-ink-3 tabular">
          <Link to="/runs" search={{ since }} className="text-accent hover:underline">
            {exact ? "" : "≥ "}
            {total.toLocaleString()} started
          </Link>
          ,{" "}
          <Link to="/runs" search={{ since, status: ["FAILED"] }} className="text-accent hover:underline">
            {failed.data?.exact === false ? "≥ " : ""}
            {bad.toLocaleString()} of them failed
          </Link>
        </span>
      }
    >
      {all.isPending ? (
        <Loading rows={3} />
      ) : (
        <div className="p-4 pb-2">
          <div className="flex h-32 items-end gap-1">
            {hours.map((each) => (
              <Link
                key={each.hour}
                to="/runs"
                search={{
                  since: new Date(each.hour).toISOString(),
                  until: new Date(each.hour + HOUR).toISOString(),
                }}
                title={`${label(each.hour)}: ${each.all} started, ${each.failed} failed`}
                aria-label={`${label(each.hour)}: ${each.all} started, ${each.failed} failed`}
                className="flex h-full min-w-0 flex-1 flex-col justify-end rounded-sm hover:bg-hover"
              >
                <span
                  data-status="FAILED"
                  className="block bg-[var(--st)]"
                  style={{ height: `${(100 * each.failed) / most}%` }}
                />
                {each.all === 0 ? (
                  <span className="block h-px bg-line-strong" />
                ) : (
                  <span
                    data-status="COMPLETED"
                    className="block bg-[var(--st)]"
                    style={{ height: `${Math.max(2, (100 * (each.all - each.failed)) / most)}%` }}
                  />
                )}
              </Link>
            ))}
          </div>
          <div className="mt-1 flex justify-between text-2xs text-ink-3 tabular">
            <span>{label(first)}</span>
            <span>{label(first + (HOUR * HOURS) / 2)}</span>
            <span>now</span>
          </div>
        </div>
      )}
    </Card>
  );
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const label = (hour: number) => clock.format(hour);
