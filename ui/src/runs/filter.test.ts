import { expect, test } from "vitest";
import { asked, commandOf, readFilter } from "./filter";

test("an address that somebody has mistyped gives the filter that is left of it", () => {
  expect(
    asked(readFilter({ status: ["FAILED", "NONSENSE"], tag: "novalue", order: "7", q: " ", workflow: 3 })),
  ).toEqual({
    status: ["FAILED"],
  });
});

test("one value in an address is a list of one", () => {
  expect(readFilter({ status: "PAUSED", tag: "a=b" })).toMatchObject({ status: ["PAUSED"], tag: ["a=b"] });
});

test("the command lists the same runs, whatever their names have in them", () => {
  expect(commandOf({ workflow: "it's", status: ["FAILED"], tag: ["a=b c"] })).toBe(
    "stepwell ls --status FAILED --workflow 'it'\\''s' --tag 'a=b c'",
  );
});
