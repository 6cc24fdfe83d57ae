import { quoted } from "@/runs/filter";
import { Field, TextField } from "./fields";

/** Why something is asked for: one line, which the audit log keeps. */
export function Reason({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  return (
    <Field label="Reason (kept in the audit log)">
      <TextField
        value={value}
        maxLength={1_000}
        placeholder="None"
        onChange={(event) => onChange(event.target.value)}
      />
    </Field>
  );
}

/** The option of the command line that says the same. */
export const reasonOption = (reason: string) => (reason.trim() ? ["--reason", quoted(reason.trim())] : []);
