import { expect, test } from "vitest";
import { type Change, type Page, type Run, withChanges, withFirstPage } from "./changes";

const at = (minute: number) => `2026-01-01T00:${String(minute).padStart(2, "0")}:00Z`;
const run = (minute: number, more: Partial<Run> = {}) =>
  ({
    id: `r${minute}`,
    status: "RUNNING",
    seq: 1,
    created_at: at(minute),
    started_at: at(minute),
    ended_at: null,
    ...more,
  }) as Run;
const page = (minutes: number[], next: string | null = null): Page => ({
  items: minutes.map((each) => run(each)),
  next,
});
const changes = (...runs: Change[]) => new Map(runs.map((each) => [each.id, each]));
const ids = (pages: Page[]) => pages.map((each) => each.items.map((item) => item.id));

test("a run that ends changes in place, with its times, and nothing is asked", () => {
  const ended = run(3, { status: "COMPLETED", seq: 2, ended_at: at(5) });
  const { pages, isIncomplete } = withChanges([page([4, 3])], changes(ended), {});
  expect(pages[0]!.items[1]).toMatchObject({ status: "COMPLETED", ended_at: at(5), seconds: 120 });
  expect(isIncomplete).toBe(false);
});

test("an older message changes nothing", () => {
  const { pages } = withChanges([page([3])], changes(run(3, { status: "PENDING", seq: 0 })), {});
  expect(pages[0]!.items[0]!.status).toBe("RUNNING");
});

test("a run leaves the list with the status that the list is of", () => {
  const { pages, isIncomplete } = withChanges([page([4, 3])], changes(run(4, { status: "FAILED", seq: 2 })), {
    status: ["RUNNING"],
  });
  expect(ids(pages)).toEqual([["r3"]]);
  expect(isIncomplete).toBe(false);
});

test("what is asked again: a run that is new here; not one further down, nor one of another status", () => {
  const listed = [page([9, 8], "more")];
  const isIncomplete = (other: Run, filter = {}) => withChanges(listed, changes(other), filter).isIncomplete;
  expect(isIncomplete(run(10))).toBe(true);
  expect(isIncomplete(run(2))).toBe(false);
  expect(isIncomplete(run(2, { status: "COMPLETED" }), { order: "duration" })).toBe(true);
  expect(isIncomplete(run(10), { order: "duration" })).toBe(false);
  expect(isIncomplete(run(10), { status: ["FAILED"] })).toBe(false);
});

test("the first page comes anew, and no run twice or lost", () => {
  const listed = [page([9, 8, 7], "a"), page([6, 5, 4], null)];
  expect(ids(withFirstPage(listed, page([11, 10, 9], "b")))).toEqual([
    ["r11", "r10", "r9", "r8", "r7"],
    ["r6", "r5", "r4"],
  ]);
  expect(ids(withFirstPage(listed, page([11, 9, 7], "b")))).toEqual([
    ["r11", "r9", "r7"],
    ["r6", "r5", "r4"],
  ]);
  expect(ids(withFirstPage(listed, page([11, 9])))).toEqual([["r11", "r9"]]);
  expect(ids(withFirstPage(listed, page([13, 12], "b")))).toEqual([["r13", "r12"]]);
});
