/**
 * Keys of requests that make something: sent again after an answer was lost, a request with the same key makes it once. A key is
 * new when something else is asked for, and once the server has answered.
 */

import { useRef } from "react";
import { ApiError } from "./client";

const newKey = () => crypto.randomUUID?.() ?? String(Math.random()).slice(2);

/** `asked`: what the request asks for, as text. */
export function useRequestKey(asked = "") {
  const key = useRef({ asked, text: newKey() });
  if (key.current.asked !== asked) key.current = { asked, text: newKey() };
  const renew = () => {
    key.current = { asked, text: newKey() };
  };
  return {
    header: () => ({ "idempotency-key": key.current.text }),
    /** After an answer: what is asked for next is another thing. */
    done: renew,
    /** After a refusal, but not after an answer that was lost, or that the server had no time to give. */
    failed: (error: Error) => {
      if (error instanceof ApiError && error.status < 500) renew();
    },
  };
}
