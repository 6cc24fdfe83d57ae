/** The pages, and what their addresses keep: everything one has chosen to look at is in the address. */

import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { ROOT } from "./api/client";
import { SINCE } from "./audit/search";
import { HomePage } from "./home/page";
import { STATE_STATUSES } from "./home/pipelines";
import { readFilter } from "./runs/filter";
import { RunsPage } from "./runs/page";
import { Shell } from "./shell/shell";
import { Empty, Failure, Loading } from "./ui/states";

const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => <Empty title="There is no such page">The address may be mistyped.</Empty>,
});

const route = createRoute;
const text = (value: unknown) => (typeof value === "string" && value ? value : undefined);
const texts = (value: unknown) =>
  Array.isArray(value) && value.every(text) ? (value as string[]) : undefined;
const whole = (value: unknown) =>
  Number.isInteger(Number(value)) && Number(value) > 0 ? Number(value) : undefined;
const flag = (value: unknown) => (value === true ? (true as const) : undefined);
/** What is chosen, without what is not: all of it may be left out of a link. */
const chosen = <T extends object>(search: T): Partial<T> =>
  Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined)) as Partial<T>;
const oneOf = <T extends string>(value: unknown, options: readonly T[]) =>
  options.find((each) => each === value);

const home = route({
  getParentRoute: () => root,
  path: "/",
  validateSearch: (search: Record<string, unknown>) =>
    chosen({
      /** The pipeline, and the status, whose states are listed. */
      pipeline: text(search.pipeline),
      states: oneOf(search.states, STATE_STATUSES),
    }),
  component: HomePage,
});

const runs = route({
  getParentRoute: () => root,
  path: "/runs",
  validateSearch: readFilter,
  component: RunsPage,
});

export const VIEWS = ["graph", "timeline", "table", "logs", "overview"] as const;
/** Orders of the timeline. */
export const ORDERS = ["start", "graph", "longest"] as const;
export const TABS = ["why", "attempts", "input", "output", "config", "effects", "logs", "proof"] as const;

const run = route({
  getParentRoute: () => root,
  path: "/runs/$runId",
  validateSearch: (search: Record<string, unknown>) =>
    chosen({
      view: oneOf(search.view, VIEWS),
      /** The node whose panel is open. */
      node: text(search.node),
      attempt: whole(search.attempt),
      tab: oneOf(search.tab, TABS),
      /** The moment that is looked at; without it, now. */
      seq: whole(search.seq),
      /** A node around which groups are open. */
      show: text(search.show),
      /** The other groups that are open. */
      open: texts(search.open),
      /** What is searched for in lines of the log, and what in names of nodes. */
      q: text(search.q),
      find: text(search.find),
      /** In the table: the status of nodes, and the class of their error. */
      status: text(search.status),
      error: text(search.error),
      /** In the graph: whether what succeeded is left out, and whether the critical path is shown. */
      hide: flag(search.hide),
      path: flag(search.path),
      order: oneOf(search.order, ORDERS),
      /** In the timeline: whether idle time is as long as it was. */
      even: flag(search.even),
      level: text(search.level),
      line: text(search.line),
    }),
  component: lazyRouteComponent(() => import("./run/page"), "RunPage"),
});

const compare = route({
  getParentRoute: () => root,
  path: "/compare/$runId/$otherId",
  validateSearch: (search: Record<string, unknown>) =>
    chosen({
      view: oneOf(search.view, ["nodes", "times"] as const),
      node: text(search.node),
      /** Whether the outputs of the node are shown side by side. */
      outputs: flag(search.outputs),
      /** The groups of the graph that are open. */
      open: texts(search.open),
    }),
  component: lazyRouteComponent(() => import("./compare/page"), "ComparePage"),
});

const workflows = route({
  getParentRoute: () => root,
  path: "/workflows",
  validateSearch: (search: Record<string, unknown>) => chosen({ q: text(search.q) }),
  component: lazyRouteComponent(() => import("./workflows/page"), "WorkflowsPage"),
});

const workflow = route({
  getParentRoute: () => root,
  path: "/workflows/$name",
  validateSearch: (search: Record<string, unknown>) =>
    chosen({
      tab: oneOf(search.tab, ["graph", "start", "runs", "versions"] as const),
      version: whole(search.version),
      /** A run whose input the form begins with. */
      from: text(search.from),
      /** In the graph: the node that is selected, and the groups that are open. */
      node: text(search.node),
      open: texts(search.open),
    }),
  component: lazyRouteComponent(() => import("./workflows/workflow"), "WorkflowPage"),
});

const triggers = route({
  getParentRoute: () => root,
  path: "/triggers",
  validateSearch: (search: Record<string, unknown>) => chosen({ name: text(search.name) }),
  component: lazyRouteComponent(() => import("./triggers/page"), "TriggersPage"),
});

const workers = route({
  getParentRoute: () => root,
  path: "/workers",
  component: lazyRouteComponent(() => import("./workers/page"), "WorkersPage"),
});

const auditLog = route({
  getParentRoute: () => root,
  path: "/audit-log",
  validateSearch: (search: Record<string, unknown>) =>
    chosen({
      run: text(search.run),
      who: text(search.who),
      action: text(search.action),
      since: oneOf(search.since, SINCE),
    }),
  component: lazyRouteComponent(() => import("./audit/page"), "AuditLogPage"),
});

export const router = createRouter({
  routeTree: root.addChildren([home, runs, run, compare, workflows, workflow, triggers, workers, auditLog]),
  basepath: ROOT || "/",
  defaultPreload: "intent",
  defaultPendingComponent: () => <Loading />,
  defaultErrorComponent: ({ error, reset }) => <Failure error={error} retry={reset} />,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
