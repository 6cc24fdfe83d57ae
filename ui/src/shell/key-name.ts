type Pressed = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">;

/** A key as pages name it, as in `mod+k`, `?` or `f`; null for what belongs to the browser or the system, as Ctrl+F on a Mac. */
export function keyName({ key, ctrlKey, metaKey, altKey }: Pressed, isMac: boolean): string | null {
  const [mod, other] = isMac ? [metaKey, ctrlKey] : [ctrlKey, metaKey];
  if (other || altKey) return null;
  return `${mod ? "mod+" : ""}${key.length === 1 ? key.toLowerCase() : key}`;
}
