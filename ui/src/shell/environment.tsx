import { useQuery } from "@tanstack/react-query";
import { ExternalLink } from "lucide-react";
import { serverQuery } from "@/api/queries";
import { traceAddress } from "./traces";

/** The name of the environment, so that nobody takes production for something else. */
export function Environment() {
  const { data: server } = useQuery(serverQuery);
  if (!server?.environment) return null;
  return (
    <span
      data-environment={server.environment_colour}
      title={`Environment: ${server.environment}`}
      className="max-w-28 truncate rounded border border-[var(--env)] px-1.5 py-px text-2xs font-semibold text-[var(--env)] md:max-w-48"
    >
      {server.environment}
    </span>
  );
}

/** The traces of a run or node, where the settings say where they are. */
export function TraceLink({ run, node }: { run: string; node?: string }) {
  const template = useQuery(serverQuery).data?.trace_url;
  const address = template ? traceAddress(template, run, node) : undefined;
  if (!address) return null;
  return (
    <a
      href={address}
      target="_blank"
      rel="noreferrer noopener"
      className="inline-flex items-center gap-1 text-xs text-accent hover:underline"
    >
      Traces <ExternalLink size={12} aria-hidden />
    </a>
  );
}
