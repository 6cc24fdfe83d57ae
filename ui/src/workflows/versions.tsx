import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask, askAll, type Schemas } from "@/api/client";
import { useSession } from "@/shell/session";
import { Button } from "@/ui/button";
import { notify } from "@/ui/overlays";
import { Empty, Failure, Loading } from "@/ui/states";
import { Time } from "@/ui/time";
import { diffLines, type Stretch, stretches } from "./diff";

type Workflow = Schemas["WorkflowDetail"];

/** The versions of a document, and what differs between two of them. */
export function Versions({ workflow }: { workflow: Workflow }) {
  const { may } = useSession();
  const queries = useQueryClient();
  const { name } = workflow;
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ["versions", name],
    queryFn: () =>
      askAll((cursor) =>
        api.GET("/api/v1/workflows/{name}/versions", {
          params: { path: { name }, query: { limit: 1_000, cursor } },
        }),
      ),
    select: (oldestFirst) => [...oldestFirst].reverse(),
  });
  const [left, setLeft] = useState<number | null>(null);
  const [right, setRight] = useState<number | null>(null);
  const activate = useMutation({
    mutationFn: (version: number) =>
      ask(api.POST("/api/v1/workflows/{name}/activate", { params: { path: { name } }, body: { version } })),
    onSuccess: (saved) => {
      notify(`Version ${saved.active} is what ${name} starts`);
      void queries.invalidateQueries();
    },
    onError: (failure) => notify(failure.message, { bad: true }),
  });
  if (isPending) return <Loading rows={4} />;
  if (error) return <Failure error={error} retry={() => void refetch()} />;
  const versions = data;
  const newer = right ?? versions[0]?.version;
  const older = left ?? versions[1]?.version;
  return (
    <div className="grid min-h-0 flex-1 gap-4 overflow-auto p-4 lg:grid-cols-[22rem_1fr]">
      <table className="h-fit w-full overflow-hidden rounded-xl border border-line bg-paper text-[13px]">
        <thead>
          <tr className="text-left text-2xs text-ink-3 uppercase">
            <th className="px-3 py-2">Version</th>
            <th>Saved</th>
            <th>From</th>
            <th>To</th>
            <th className="pr-3" />
          </tr>
        </thead>
        <tbody>
          {versions.map((each) => (
            <tr key={each.version} className="border-t border-line">
              <td className="px-3 py-1.5 font-medium">
                {each.version} {each.active && <span className="text-2xs text-ok">active</span>}
              </td>
              <td className="text-ink-2">
                <Time at={each.saved_at} />
              </td>
              <td>
                <input
                  type="radio"
                  name="older"
                  aria-label={`Compare from version ${each.version}`}
                  checked={older === each.version}
                  onChange={() => setLeft(each.version)}
                />
              </td>
              <td>
                <input
                  type="radio"
                  name="newer"
                  aria-label={`Compare to version ${each.version}`}
                  checked={newer === each.version}
                  onChange={() => setRight(each.version)}
                />
              </td>
              <td className="pr-3 text-right">
                {may("author") && !each.active && (
                  <Button small onClick={() => activate.mutate(each.version)}>
                    Activate
                  </Button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {newer !== undefined && older !== undefined ? (
        <Difference name={name} older={older} newer={newer} />
      ) : (
        <Empty title="There is one version">What changes with the next one is shown here.</Empty>
      )}
    </div>
  );
}

function Difference({ name, older, newer }: { name: string; older: number; newer: number }) {
  const document = (version: number) => ({
    queryKey: ["workflow", name, version],
    queryFn: () =>
      ask(api.GET("/api/v1/workflows/{name}", { params: { path: { name }, query: { version } } })),
  });
  const before = useQuery(document(older));
  const after = useQuery(document(newer));
  if (before.error ?? after.error) return <Failure error={before.error ?? after.error} />;
  if (!before.data || !after.data) return <Loading />;
  const lines = diffLines(
    JSON.stringify(before.data.document, null, 2).split("\n"),
    JSON.stringify(after.data.document, null, 2).split("\n"),
  );
  const same = lines.every((line) => line.kind === "same");
  if (same) return <Empty title="They are the same" />;
  return (
    <section
      aria-label={`From version ${older} to version ${newer}`}
      className="h-fit min-w-0 rounded-xl border border-line bg-paper p-3 font-mono text-xs leading-5"
    >
      {stretches(lines).map((stretch, index) => (
        <Part key={`${older} ${newer} ${index}`} stretch={stretch} />
      ))}
    </section>
  );
}

function Part({ stretch: { kind, lines } }: { stretch: Stretch }) {
  const [isOpen, setOpen] = useState(kind === "lines" || lines.length < 3);
  if (!isOpen) {
    return (
      <button
        type="button"
        className="my-0.5 block w-full rounded bg-canvas px-2 py-0.5 text-left text-2xs text-ink-3 hover:bg-hover"
        onClick={() => setOpen(true)}
      >
        {lines.length.toLocaleString()} lines that are the same
      </button>
    );
  }
  return lines.map((line, index) => (
    <div key={`${index} ${line.kind}`} className={`break-words whitespace-pre-wrap ${STYLE[line.kind]}`}>
      {{ same: "  ", gone: "- ", come: "+ " }[line.kind]}
      {line.text}
    </div>
  ));
}

const STYLE = {
  same: "text-ink-2",
  gone: "bg-danger-soft text-danger",
  come: "bg-[color-mix(in_srgb,var(--ok)_12%,transparent)] text-ok",
};
