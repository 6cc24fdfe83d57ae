import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { NONCE } from "./api/client";
import { queries } from "./api/queries";
import { router } from "./router";
import { applyTheme } from "./shell/theme";
import "./styles.css";

setNonce(NONCE); // of the styles that dialogs put into the page
applyTheme();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
