/** Asking the server: typed by its OpenAPI document, with one kind of error. */

import createClient, { type Middleware } from "openapi-fetch";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Problem = Schemas["ProblemRecord"];

const meta = (name: string) => document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? "";

/** The path that the server is reached below, as in `/stepwell`; mostly nothing. In development Vite leaves the placeholder. */
export const ROOT = meta("stepwell-root").startsWith("%") ? "" : meta("stepwell-root");
export const NONCE = meta("stepwell-nonce");
export const API = `${ROOT}/api/v1`;

/** What the server refused, in its words. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly problem: Partial<Problem>,
  ) {
    super(problem.detail ?? problem.title ?? `the server answered ${status}`);
    this.name = "ApiError";
  }
}

/** The server could not be reached, or did not answer. */
export class Unreachable extends Error {
  constructor() {
    super("The server cannot be reached. What is shown may be out of date.");
    this.name = "Unreachable";
  }
}

export const api = createClient<paths>({ baseUrl: ROOT, headers: { "X-Stepwell-From": "ui" } });

/** The header with the reason of a request: headers are ASCII, so the text is percent-encoded. */
export const because = (reason: string): Record<string, string> =>
  reason.trim() ? { "X-Stepwell-Reason": encodeURIComponent(reason.trim()) } : {};

type Answered<T> = { data?: T; error?: unknown; response: Response };

/** The data of an answer; an ApiError if the server refused, Unreachable if there was none. */
export async function ask<T>(request: Promise<Answered<T>>): Promise<T> {
  let answer: Answered<T>;
  try {
    answer = await request;
  } catch (error) {
    throw error instanceof DOMException && error.name === "AbortError" ? error : new Unreachable();
  }
  if (!answer.response.ok)
    throw new ApiError(answer.response.status, (answer.error ?? {}) as Partial<Problem>);
  return answer.data as T;
}

/** All items of a list, page after page. Only for lists that are short by nature. */
export async function askAll<Item>(
  page: (cursor: string | undefined) => Promise<Answered<{ items: Item[]; next: string | null }>>,
): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const answer = await ask(page(cursor));
    items.push(...answer.items);
    cursor = answer.next ?? undefined;
  } while (cursor !== undefined);
  return items;
}

const SESSION = "/api/v1/session";

/** Call `listener` when a request was refused for want of a session, or got no answer, whoever made it. */
export function onAccessLost(listener: () => void): () => void {
  const watch: Middleware = {
    onResponse({ response, schemaPath }) {
      if (response.status === 401 && schemaPath !== SESSION) listener();
    },
    onError({ error, schemaPath }) {
      if (!(error instanceof DOMException) && schemaPath !== SESSION) listener();
    },
  };
  api.use(watch);
  return () => api.eject(watch);
}
