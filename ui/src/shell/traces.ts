/** The address of the traces of a run, or of a node of it; nothing where the template gives no http address. */
export function traceAddress(template: string, run: string, node = ""): string | undefined {
  const ids: Record<string, string> = { "{run}": run, "{node}": node };
  const address = template.replace(/\{(run|node)\}/g, (place) => encodeURIComponent(ids[place] ?? ""));
  return /^https?:$/.test(URL.parse(address)?.protocol ?? "") ? address : undefined;
}
