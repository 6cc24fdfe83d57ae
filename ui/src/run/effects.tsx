import { useInfiniteQuery } from "@tanstack/react-query";
import { api, ask } from "@/api/client";
import { Button } from "@/ui/button";
import { Json } from "@/ui/json";
import { Empty, Failure, Loading } from "@/ui/states";
import type { NodeDetail, RunDetail } from "./data";

/** What the node asked of the outside, as it was recorded: what a replay gets instead of asking. */
export function EffectsTab({ run, node }: { run: RunDetail; node: NodeDetail }) {
  const listed = useInfiniteQuery({
    queryKey: ["node", run.id, node.id, "effects"],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      ask(
        api.GET("/api/v1/runs/{run_id}/effects", {
          params: { path: { run_id: run.id }, query: { node: node.id, cursor: pageParam, limit: 50 } },
        }),
      ),
    getNextPageParam: (page) => page.next ?? undefined,
  });
  if (listed.isPending) return <Loading rows={3} />;
  if (listed.isError) return <Failure error={listed.error} retry={() => void listed.refetch()} />;
  const effects = listed.data.pages.flatMap((page) => page.items);
  if (effects.length === 0) {
    return <Empty title="No effects">Calls of ctx.effect and recorded HTTP requests are listed here.</Empty>;
  }
  return (
    <div className="space-y-2 p-4">
      {effects.map((effect, index) => (
        <Json key={index} value={effect} open={1} />
      ))}
      {listed.hasNextPage && (
        <Button small onClick={() => void listed.fetchNextPage()}>
          More
        </Button>
      )}
    </div>
  );
}
