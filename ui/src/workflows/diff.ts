export type DiffLine = { kind: "same" | "gone" | "come"; text: string };

/** What differs between two texts, by lines: the longest common subsequence between what both begin and end with. */
export function diffLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  const most = Math.min(before.length, after.length) - head;
  while (tail < most && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  const a = before.slice(head, before.length - tail);
  const b = after.slice(head, after.length - tail);
  const same = (text: string): DiffLine => ({ kind: "same", text });
  const middle =
    a.length * b.length > 4_000_000
      ? [
          ...a.map((text): DiffLine => ({ kind: "gone", text })),
          ...b.map((text): DiffLine => ({ kind: "come", text })),
        ]
      : common(a, b);
  return [...before.slice(0, head).map(same), ...middle, ...before.slice(before.length - tail).map(same)];
}

function common(a: readonly string[], b: readonly string[]): DiffLine[] {
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        a[i] === b[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i]! });
      i++;
      j++;
    } else if (
      j >= b.length ||
      (i < a.length && lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!)
    ) {
      lines.push({ kind: "gone", text: a[i++]! });
    } else lines.push({ kind: "come", text: b[j++]! });
  }
  return lines;
}

export type Stretch = { kind: "lines" | "folded"; lines: DiffLine[] };

/** The lines in stretches: what changed with some lines around it, and what may be folded between. */
export function stretches(lines: readonly DiffLine[], around = 3): Stretch[] {
  const isNear = lines.map(() => false);
  lines.forEach((line, index) => {
    if (line.kind === "same") return;
    for (let at = Math.max(0, index - around); at <= index + around && at < lines.length; at++)
      isNear[at] = true;
  });
  const found: Stretch[] = [];
  lines.forEach((line, index) => {
    const kind = isNear[index] ? "lines" : "folded";
    const last = found.at(-1);
    if (last?.kind === kind) last.lines.push(line);
    else found.push({ kind, lines: [line] });
  });
  return found;
}
