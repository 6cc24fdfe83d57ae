import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import clsx from "clsx";
import { CircleHelp, CircleUser, LogOut, Moon, Search, Sun, SunMoon } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { ApiError, api, ask, onAccessLost, Unreachable } from "@/api/client";
import { useLiveState } from "@/api/live";
import { sessionQuery } from "@/api/queries";
import { IconButton } from "@/ui/button";
import { Menu, Messages, notify } from "@/ui/overlays";
import { Failure } from "@/ui/states";
import { Environment } from "./environment";
import { Help } from "./help";
import { useKeys, withMod } from "./keys";
import { Logo } from "./logo";
import { usePages } from "./pages";
import { Palette } from "./palette";
import { SignIn } from "./signin";
import { chooseTheme, chosenTheme, type Theme, useTheme } from "./theme";

export function Shell() {
  const { error, data, refetch } = useQuery(sessionQuery);
  const state = useLiveState();
  const [palette, setPalette] = useState(false);
  const [help, setHelp] = useState(false);
  const queries = useQueryClient();
  useKeys({ "mod+k": () => setPalette(true), "?": () => setHelp(true) });
  // That a session has ended, or the server is away, is noticed by the stream, or by whatever is refused next.
  useEffect(() => {
    if (state === "signed out" || state === "away") void queries.invalidateQueries(sessionQuery);
  }, [state, queries]);
  useEffect(() => onAccessLost(() => void queries.invalidateQueries(sessionQuery)), [queries]);
  const isAway = error instanceof Unreachable;
  const wasAway = useRef(false);
  useEffect(() => {
    // It is back: what failed in between is asked again.
    if (wasAway.current && !isAway)
      void queries.invalidateQueries({ predicate: ({ state }) => state.error !== null });
    wasAway.current = isAway;
  }, [isAway, queries]);
  if (error instanceof ApiError && error.status === 401) return <SignIn />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  return (
    <div className="flex h-full flex-col">
      <Header onPalette={() => setPalette(true)} onHelp={() => setHelp(true)} />
      <div className="flex min-h-0 flex-1">
        <Navigation />
        <main className="flex min-w-0 flex-1 flex-col overflow-auto pb-14 md:pb-0">
          {isAway && <Away />}
          <Outlet />
        </main>
      </div>
      <Palette open={palette} onClose={() => setPalette(false)} />
      <Help open={help} onClose={() => setHelp(false)} />
      <Messages />
    </div>
  );
}

function Away() {
  return (
    <p role="status" className="border-b border-warn/30 bg-warn-soft px-4 py-1.5 text-xs text-warn">
      The server cannot be reached. What is shown may be out of date. The page asks again every few seconds.
    </p>
  );
}

function Header({ onPalette, onHelp }: { onPalette: () => void; onHelp: () => void }) {
  return (
    <header className="flex h-12 shrink-0 items-center gap-2 border-b border-line bg-paper px-3 md:px-4">
      <Link to="/" aria-label="Stepwell, home">
        <Logo />
      </Link>
      <Environment />
      <button
        type="button"
        onClick={onPalette}
        className="mx-auto hidden h-8 w-full max-w-md items-center gap-2 rounded-md border border-line bg-canvas px-2.5 text-[13px] text-ink-3 hover:border-line-strong sm:flex"
      >
        <Search size={14} />
        <span className="flex-1 text-left">Go to a run, a workflow, a page</span>
        <kbd className="rounded border border-line-strong px-1 text-2xs">{withMod("K")}</kbd>
      </button>
      <span className="flex-1 sm:hidden" />
      <Connection />
      <IconButton label="Search" className="sm:hidden" onClick={onPalette}>
        <Search size={16} />
      </IconButton>
      <IconButton label="Keys and help (?)" onClick={onHelp}>
        <CircleHelp size={16} />
      </IconButton>
      <ThemeMenu />
      <Account />
    </header>
  );
}

const CONNECTION = {
  idle: ["", ""],
  connecting: ["connecting", "bg-[var(--st-waiting)]"],
  live: ["live", "bg-[var(--st-completed)]"],
  away: ["reconnecting", "bg-[var(--st-failed)]"],
  "signed out": ["signed out", "bg-[var(--st-failed)]"],
} as const;

function Connection() {
  const [label, colour] = CONNECTION[useLiveState()];
  if (!label) return null;
  return (
    <span className="flex items-center gap-1.5 px-1 text-xs text-ink-2" role="status" data-live={label}>
      <span className={clsx("size-2 rounded-full", colour)} />
      {label}
    </span>
  );
}

function ThemeMenu() {
  const theme = useTheme();
  const item = (value: Theme, label: string, icon: React.ReactNode) => ({
    label: chosenTheme() === value ? `${label} ✓` : label,
    icon,
    onSelect: () => chooseTheme(value),
  });
  return (
    <Menu
      label="Light or dark"
      trigger={
        <IconButton label="Light or dark">
          {theme === "dark" ? <Moon size={16} /> : <Sun size={16} />}
        </IconButton>
      }
      items={[
        item("light", "Light", <Sun size={14} />),
        item("dark", "Dark", <Moon size={14} />),
        item("system", "As the system", <SunMoon size={14} />),
      ]}
    />
  );
}

function Account() {
  const { data } = useQuery(sessionQuery);
  const queries = useQueryClient();
  if (!data?.token) return null;
  return (
    <Menu
      label={`Account of ${data.name}`}
      trigger={
        <button
          type="button"
          className="flex h-8 items-center gap-1.5 rounded-md px-2 text-xs text-ink-2 hover:bg-hover"
        >
          <CircleUser size={16} className="text-accent" />
          <span className="hidden max-w-32 truncate md:block">{data.name}</span>
        </button>
      }
      items={[
        { label: `May ${data.scopes.join(", ")}`, onSelect: () => {}, disabled: true },
        null,
        {
          label: "Sign out",
          icon: <LogOut size={14} />,
          onSelect: async () => {
            try {
              await ask(api.DELETE("/api/v1/session"));
            } catch (failure) {
              return notify(`You are still signed in: ${(failure as Error).message}`, { bad: true });
            }
            await queries.resetQueries();
          },
        },
      ]}
    />
  );
}

function Navigation() {
  const pages = usePages();
  const path = useRouterState({ select: (state) => state.location.pathname });
  return (
    <nav
      aria-label="Pages"
      className="fixed inset-x-0 bottom-0 z-30 flex h-14 justify-around border-t border-line bg-paper md:static md:h-auto md:w-44 md:shrink-0 md:flex-col md:justify-start md:gap-0.5 md:border-t-0 md:border-r md:p-2"
    >
      {pages.map(({ to, label, icon: Icon, key, scope }) => {
        const active =
          to === "/" ? path === "/" : path.startsWith(to) || (to === "/runs" && path.startsWith("/compare"));
        return (
          <Link
            key={to}
            to={to}
            aria-current={active ? "page" : undefined}
            title={`${label} (g ${key})`}
            className={clsx(
              // On a phone there is room for what all look at; the palette leads to the rest.
              scope === "admin" ? "hidden md:flex" : "flex",
              "flex-1 flex-col items-center justify-center gap-0.5 rounded-md text-2xs md:h-8 md:flex-none md:flex-row md:justify-start md:gap-2.5 md:px-2.5 md:text-[13px]",
              active
                ? "font-medium text-accent md:bg-accent-soft"
                : "text-ink-2 hover:bg-hover hover:text-ink",
            )}
          >
            <Icon size={16} strokeWidth={active ? 2.2 : 1.8} />
            {label}
          </Link>
        );
      })}
    </nav>
  );
}
