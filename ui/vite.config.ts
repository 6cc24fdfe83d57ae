import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { loadEnv } from "vite";
import { defineConfig } from "vitest/config";

// The page is served below any path, with `./` replaced by the server: see src/stepwell/server/web_ui.py.
export default defineConfig({
  base: "./",
  plugins: [react(), tailwindcss()],
  resolve: { alias: { "@": new URL("./src", import.meta.url).pathname } },
  build: {
    assetsInlineLimit: 0, // the policy of the page allows no data: fonts
    chunkSizeWarningLimit: 600,
    license: { fileName: "licenses.md" }, // notices of the packages that are bundled
    target: "es2023",
  },
  worker: { format: "es" },
  test: { css: true }, // one test reads the colours
  server: {
    proxy: { "/api": loadEnv("", ".", "STEPWELL_").STEPWELL_API ?? "http://127.0.0.1:8765" },
  },
});
