/** Who is using the page, and what that may do. */

import { useQuery } from "@tanstack/react-query";
import { sessionQuery } from "@/api/queries";
import { includes, type Scope } from "@/api/tables";

export function useSession() {
  const { data } = useQuery(sessionQuery);
  return {
    session: data,
    /** What may not be done is not offered. */
    may: (scope: Scope) => data !== undefined && includes(data.scopes, scope),
  };
}
