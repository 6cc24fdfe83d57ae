import type { RJSFSchema } from "@rjsf/utils";

/**
 * The schema as a form shows it best. `anyOf: [X, null]`, which is what pydantic writes for an optional field, is X that may be left
 * empty: people choose a value, not an option of two.
 */
export function plain(schema: RJSFSchema): RJSFSchema {
  const made = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, inner(key, value)]),
  ) as RJSFSchema;
  for (const union of ["anyOf", "oneOf"] as const) {
    const options = made[union] as RJSFSchema[] | undefined;
    const real = options?.filter((option) => option.type !== "null");
    if (options && real?.length === 1 && real.length < options.length) {
      const { [union]: _, default: given, ...rest } = made;
      return { ...real[0], ...rest, ...(given === null || given === undefined ? {} : { default: given }) };
    }
  }
  return made;
}

/** What must be given comes first, in the order of the form; stored schemas have their fields by name. */
export const fieldOrder = (schema: RJSFSchema): string[] => [...(schema.required ?? []), "*"];

const NAMED = new Set(["properties", "$defs", "definitions", "patternProperties"]);

function inner(key: string, value: unknown): unknown {
  if (value === null || typeof value !== "object" || ["default", "const", "enum", "examples"].includes(key))
    return value;
  if (Array.isArray(value)) return value.map((each) => inner("", each));
  if (!NAMED.has(key)) return plain(value as RJSFSchema);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, inner("", each)]));
}
