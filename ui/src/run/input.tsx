/** A JSON object that people write. */

import { Field } from "@/ui/fields";

type Parsed = { value?: Record<string, unknown>; error: string | null };

/** Nothing written is no object, and no error. */
export function parseObject(text: string): Parsed {
  if (!text.trim()) return { error: null };
  try {
    const value: unknown = JSON.parse(text);
    if (value === null || typeof value !== "object" || Array.isArray(value))
      return { error: "Expected a JSON object." };
    return { value: value as Record<string, unknown>, error: null };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

type Props = { label: string; hint: string; value: string; onChange: (text: string) => void };

export function ObjectField({ label, hint, value, onChange }: Props) {
  const { error } = parseObject(value);
  return (
    <>
      <Field label={label} hint={hint}>
        <textarea
          value={value}
          onChange={(event) => onChange(event.target.value)}
          rows={3}
          placeholder='{"order_id": 7}'
          className="w-full rounded-md border border-line-strong bg-raised p-2 font-mono text-xs"
        />
      </Field>
      {error && <p className="text-xs text-danger">{error}</p>}
    </>
  );
}
