/** What a node was given and what it returned. */

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { api, ask, ROOT, type Schemas } from "@/api/client";
import { Button } from "@/ui/button";
import { Command } from "@/ui/copy";
import { Json } from "@/ui/json";
import { Empty, Failure, Loading } from "@/ui/states";
import type { NodeDetail, RunDetail } from "./data";

type Output = Schemas["OutputRecord"];

/** An output as a tree; a large one once it is asked for. */
export function Value({ output }: { output: Output }) {
  const large = useQuery({
    queryKey: ["output", output.href, output.sha256],
    queryFn: async ({ signal }): Promise<{ value: unknown }> => {
      const answer = await fetch(`${ROOT}${output.href}`, { signal });
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      return { value: await answer.json() };
    },
    enabled: false,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  if (output.inline) return <Json value={output.value} />;
  if (large.data) return <Json value={large.data.value} open={1} />;
  return (
    <div className="space-y-2">
      <div className="flex flex-wrap items-center gap-3 text-[13px] text-ink-2">
        <Button small disabled={large.isFetching} onClick={() => void large.refetch()}>
          {large.isFetching ? "Loading…" : `Load its ${size(output.size)}`}
        </Button>
        <a className="text-accent underline" href={`${ROOT}${output.href}`} target="_blank" rel="noreferrer">
          Open it as JSON
        </a>
      </div>
      {large.error && <Failure error={large.error} className="m-0!" />}
    </div>
  );
}

const size = (bytes: number) =>
  bytes < 1_000_000 ? `${Math.ceil(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;

export function OutputTab({ run, node }: { run: RunDetail; node: NodeDetail }) {
  if (!node.output) return <Empty title="No output">It has not completed, or returned nothing.</Empty>;
  const { output } = node;
  return (
    <div className="space-y-3 p-4">
      <Value output={output} />
      <p className="text-xs break-all text-ink-3">
        {output.size.toLocaleString()} bytes, SHA-256 {output.sha256}
      </p>
      <Command text={`stepwell show ${run.id} ${node.name} --json`} />
    </div>
  );
}

/** What its parents returned; of a node without parents, the input of the run. */
export function InputTab({ run, node }: { run: RunDetail; node: NodeDetail }) {
  const hasParents = node.depends_on.length > 0;
  const listed = useInfiniteQuery({
    queryKey: ["node", run.id, node.id, "inputs"],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      ask(
        api.GET("/api/v1/runs/{run_id}/nodes/{node}/inputs", {
          params: { path: { run_id: run.id, node: node.id }, query: { cursor: pageParam, limit: 50 } },
          signal,
        }),
      ),
    getNextPageParam: (page) => page.next ?? undefined,
    enabled: hasParents,
  });
  if (!hasParents) {
    return (
      <section className="space-y-2 p-4">
        <p className="text-[13px] text-ink-2">It depends on no other node. The run has this input:</p>
        <Json value={run.input} />
      </section>
    );
  }
  if (listed.isPending) return <Loading rows={3} />;
  if (listed.isError) return <Failure error={listed.error} retry={() => void listed.refetch()} />;
  const outputs = listed.data.pages.flatMap((page) => page.items);
  return (
    <div className="space-y-4 p-4">
      <p className="text-[13px] text-ink-2">
        {outputs.length === 0
          ? "None of the nodes that it depends on has completed yet."
          : "What the nodes returned that it depends on:"}
      </p>
      {outputs.map((output) => (
        <section key={output.node} className="space-y-1">
          <h3 className="text-[13px] font-medium break-words">{output.name}</h3>
          <Value output={output} />
        </section>
      ))}
      {listed.hasNextPage && (
        <Button small onClick={() => void listed.fetchNextPage()}>
          More
        </Button>
      )}
    </div>
  );
}
