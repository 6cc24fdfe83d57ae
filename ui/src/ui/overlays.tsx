/** What lies above the page: dialogs, menus, short messages. Behaviour and keys are Radix's, looks are ours. */

import clsx from "clsx";
import { X } from "lucide-react";
import { Dialog as D, DropdownMenu as M } from "radix-ui";
import { type ReactNode, useRef, useSyncExternalStore } from "react";
import { IconButton } from "./button";

type DialogProps = {
  open: boolean;
  onClose: () => void;
  title: string;
  description?: ReactNode;
  children: ReactNode;
  footer?: ReactNode;
  wide?: boolean;
};

/** The field that wants the focus, or the dialog itself: not its first button, which closes it. */
function focusDialog(event: Event) {
  event.preventDefault();
  const dialog = event.currentTarget as HTMLElement;
  (dialog.querySelector<HTMLElement>("[data-autofocus]") ?? dialog).focus();
}

/** Handlers of a dialog. Radix gives the focus back only to a trigger of its own, and ours open by what the page keeps. */
export function useFocusReturn() {
  const opener = useRef<Element | null>(null);
  return {
    onOpenAutoFocus: (event: Event) => {
      opener.current = document.activeElement;
      focusDialog(event);
    },
    onCloseAutoFocus: (event: Event) => {
      event.preventDefault();
      // This comes a moment after the dialog has gone: by then, one may write somewhere else.
      const isFree = document.activeElement === null || document.activeElement === document.body;
      if (isFree && opener.current instanceof HTMLElement) opener.current.focus();
    },
  };
}

export function Dialog({ open, onClose, title, description, children, footer, wide }: DialogProps) {
  const focus = useFocusReturn();
  return (
    <D.Root open={open} onOpenChange={(now) => !now && onClose()}>
      <D.Portal>
        <D.Overlay className="fixed inset-0 z-40 bg-black/45" />
        <D.Content
          className={clsx(
            "fixed top-[8vh] left-1/2 z-50 flex max-h-[84vh] w-[calc(100vw-1.5rem)] -translate-x-1/2 flex-col rounded-xl border border-line bg-raised shadow-pop outline-none",
            wide ? "max-w-4xl" : "max-w-xl",
          )}
          {...(description ? {} : { "aria-describedby": undefined })}
          {...focus}
        >
          <header className="flex items-start gap-3 px-5 pt-4 pb-2">
            <div className="min-w-0 flex-1">
              <D.Title className="text-[15px] font-semibold">{title}</D.Title>
              {description && (
                <D.Description className="mt-0.5 text-[13px] text-ink-2">{description}</D.Description>
              )}
            </div>
            <D.Close asChild>
              <IconButton label="Close">
                <X size={16} />
              </IconButton>
            </D.Close>
          </header>
          <div className="min-h-0 flex-1 overflow-auto px-5 py-2">{children}</div>
          {footer && (
            <footer className="flex flex-wrap items-center justify-end gap-2 border-t border-line px-5 py-3">
              {footer}
            </footer>
          )}
        </D.Content>
      </D.Portal>
    </D.Root>
  );
}

export type MenuItem = {
  label: string;
  icon?: ReactNode;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
  hint?: string;
};

export function Menu({
  trigger,
  items,
  label,
}: {
  trigger: ReactNode;
  items: (MenuItem | null)[];
  label?: string;
}) {
  return (
    <M.Root modal={false}>
      <M.Trigger asChild aria-label={label}>
        {trigger}
      </M.Trigger>
      <M.Portal>
        <M.Content
          align="end"
          sideOffset={4}
          className="z-50 min-w-44 rounded-lg border border-line bg-raised p-1 shadow-pop"
        >
          {items.map((item, index) =>
            item === null ? (
              <M.Separator key={index} className="my-1 h-px bg-line" />
            ) : (
              <M.Item
                key={item.label}
                disabled={item.disabled}
                onSelect={item.onSelect}
                className={clsx(
                  "flex cursor-pointer items-center gap-2 rounded-md px-2.5 py-1.5 text-[13px] outline-none",
                  "data-[highlighted]:bg-hover data-[disabled]:cursor-not-allowed data-[disabled]:opacity-45",
                  item.danger ? "text-danger" : "text-ink",
                )}
              >
                {item.icon}
                <span className="flex-1">{item.label}</span>
                {item.hint && <kbd className="text-2xs text-ink-3">{item.hint}</kbd>}
              </M.Item>
            ),
          )}
        </M.Content>
      </M.Portal>
    </M.Root>
  );
}

/** Short messages about what was done. */
type Message = { id: number; text: string; bad: boolean };
let messages: Message[] = [];
let count = 0;
const listeners = new Set<() => void>();
const set = (next: Message[]) => {
  messages = next;
  for (const listener of listeners) listener();
};

export function notify(text: string, { bad = false }: { bad?: boolean } = {}) {
  const id = ++count;
  set([...messages.slice(-3), { id, text, bad }]);
  setTimeout(() => set(messages.filter((each) => each.id !== id)), bad ? 9_000 : 4_500);
}

export function Messages() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => messages,
  );
  return (
    <div
      aria-live="polite"
      className="fixed right-4 bottom-18 z-50 flex w-80 max-w-[calc(100vw-2rem)] flex-col gap-2 md:bottom-4"
    >
      {shown.map((each) => (
        <div
          key={each.id}
          className={clsx(
            "rounded-lg border px-3.5 py-2.5 text-[13px] break-words shadow-pop",
            each.bad ? "border-danger/50 bg-danger-soft text-danger" : "border-line bg-raised text-ink",
          )}
        >
          {each.text}
        </div>
      ))}
    </div>
  );
}
