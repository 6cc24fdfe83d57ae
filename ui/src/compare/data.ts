import { useQuery } from "@tanstack/react-query";
import { api, ask, type Schemas } from "@/api/client";

export type Comparison = Schemas["ComparisonRecord"] & {
  /** The first node, in the order of the graph, that differs: where the runs part. */
  parting: Schemas["PairRecord"] | null;
};

export const useComparison = (run_id: string, other: string) =>
  useQuery({
    queryKey: ["diff", run_id, other],
    queryFn: async (): Promise<Comparison> => {
      const found = await ask(
        api.GET("/api/v1/runs/{run_id}/diff/{other}", { params: { path: { run_id, other } } }),
      );
      return { ...found, parting: found.nodes.find((pair) => pair.differs.length > 0) ?? null };
    },
  });
