import { expect, test } from "vitest";
import { keyName } from "./key-name";

const pressed = (key: string, more = {}) => ({ key, ctrlKey: false, metaKey: false, altKey: false, ...more });

test("⌘ on a Mac, Ctrl elsewhere; what has the other one is not ours", () => {
  expect(keyName(pressed("k", { metaKey: true }), true)).toBe("mod+k");
  expect(keyName(pressed("k", { ctrlKey: true }), false)).toBe("mod+k");
  expect(keyName(pressed("f", { ctrlKey: true }), true)).toBeNull();
  expect(keyName(pressed("f", { metaKey: true }), false)).toBeNull();
  expect(keyName(pressed("f", { altKey: true }), false)).toBeNull();
  expect(keyName(pressed("F"), false)).toBe("f");
  expect(keyName(pressed("Escape"), true)).toBe("Escape");
});
