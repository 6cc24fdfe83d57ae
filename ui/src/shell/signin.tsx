import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, ask } from "@/api/client";
import { live } from "@/api/live";
import { Button } from "@/ui/button";
import { Command } from "@/ui/copy";
import { Field, TextField } from "@/ui/fields";
import { Failure } from "@/ui/states";
import { Logo } from "./logo";

/** Asks for a token, in place of the page: the address stays, and what it shows comes once the token is known. */
export function SignIn() {
  const queries = useQueryClient();
  const [token, setToken] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const headers = { Authorization: `Bearer ${token.trim()}` };
      await ask(api.POST("/api/v1/session", { headers }));
      await queries.resetQueries();
      live.reopen();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className="flex min-h-full items-center justify-center p-4">
      <form
        onSubmit={submit}
        className="w-full max-w-md space-y-4 rounded-xl border border-line bg-paper p-6 shadow-pop"
      >
        <Logo />
        <div>
          <h1 className="text-lg font-semibold">Sign in</h1>
          <p className="text-[13px] text-ink-2">
            This server asks for a token. It is kept as a cookie that scripts cannot read.
          </p>
        </div>
        <Field label="Token">
          <TextField
            autoFocus
            type="password"
            autoComplete="current-password"
            placeholder="sw_…"
            value={token}
            onChange={(event) => setToken(event.target.value)}
          />
        </Field>
        {error !== null && <Failure error={error} className="m-0!" />}
        <Button type="submit" look="primary" className="w-full" disabled={busy || !token.trim()}>
          {busy ? "Signing in…" : "Sign in"}
        </Button>
        <div className="space-y-1 border-t border-line pt-4 text-xs text-ink-2">
          <p>No token yet? On a machine that reaches the store:</p>
          <Command text="stepwell token create --scope run" />
        </div>
      </form>
    </main>
  );
}
