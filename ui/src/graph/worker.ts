/** Lays graphs out beside the page, which goes on meanwhile. */

import { type Input, layout } from "./layout";

self.onmessage = (event: MessageEvent<{ id: number; input: Input }>) => {
  const { id, input } = event.data;
  self.postMessage({ id, layout: layout(input) });
};
