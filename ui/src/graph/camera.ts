/** What part of the graph is looked at: moved by pointer, wheel, fingers and keys. */

import { type PointerEvent, type RefObject, useCallback, useEffect, useRef, useState } from "react";

export type Camera = { x: number; y: number; k: number };

const MIN = 0.02;
const MAX = 1.6;
/** Pixels a pointer may move in a click. */
const STILL = 5;

/** `covered`: pixels at the top of the frame that something lies over. */
export function useCamera(
  frame: RefObject<HTMLDivElement | null>,
  onChange: (camera: Camera) => void,
  covered: () => number,
) {
  const camera = useRef<Camera>({ x: 0, y: 0, k: 1 });
  const pointers = useRef(new Map<number, { x: number; y: number }>());
  const [moving, setMoving] = useState(false);
  const travel = useRef(0);
  /** Whether a person has moved it since it was last placed: then it stays. */
  const touched = useRef(false);
  const change = useCallback(
    (next: Camera) => {
      camera.current = next;
      onChange(next);
    },
    [onChange],
  );

  /** Zoom around a point of the frame. */
  const zoom = useCallback(
    (factor: number, px?: number, py?: number) => {
      touched.current = true;
      const box = frame.current!.getBoundingClientRect();
      const [x, y] = [px ?? box.width / 2, py ?? box.height / 2];
      const { x: cx, y: cy, k } = camera.current;
      const next = Math.min(MAX, Math.max(MIN, k * factor));
      change({ k: next, x: x - ((x - cx) * next) / k, y: y - ((y - cy) * next) / k });
    },
    [frame, change],
  );

  /** Show this part as large as it fits. */
  const fit = useCallback(
    (area: { x: number; y: number; w: number; h: number }, largest = 1) => {
      const box = frame.current!.getBoundingClientRect();
      const top = covered();
      const height = box.height - top;
      const margin = box.width < 640 ? 24 : 64;
      const k = Math.max(MIN, Math.min(largest, (box.width - margin) / area.w, (height - margin) / area.h));
      change({
        k,
        x: box.width / 2 - (area.x + area.w / 2) * k,
        y: top + height / 2 - (area.y + area.h / 2) * k,
      });
    },
    [frame, change, covered],
  );

  const move = useCallback(
    (dx: number, dy: number) => {
      touched.current = true;
      change({ ...camera.current, x: camera.current.x + dx, y: camera.current.y + dy });
    },
    [change],
  );

  // React listens to wheels passively: the page would scroll, too.
  useEffect(() => {
    const element = frame.current!;
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const box = element.getBoundingClientRect();
      const lines = event.deltaMode === 1 ? 16 : 1;
      if (event.ctrlKey || event.metaKey || !(event.shiftKey || event.deltaX)) {
        zoom(Math.exp(-event.deltaY * lines * 0.0016), event.clientX - box.left, event.clientY - box.top);
      } else move(-(event.deltaX || event.deltaY) * lines, event.deltaX ? -event.deltaY * lines : 0);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, [frame, zoom, move]);

  const handlers = {
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0 || (event.target as HTMLElement).closest("button")) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      pointers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
      travel.current = 0;
      setMoving(true);
    },
    onPointerMove: (event: PointerEvent) => {
      const before = pointers.current.get(event.pointerId);
      if (!before) return;
      const now = { x: event.clientX, y: event.clientY };
      const other = [...pointers.current].find(([id]) => id !== event.pointerId)?.[1];
      if (other) {
        const box = frame.current!.getBoundingClientRect();
        const span = (point: { x: number; y: number }) => Math.hypot(point.x - other.x, point.y - other.y);
        zoom(
          span(now) / Math.max(1, span(before)),
          (now.x + other.x) / 2 - box.left,
          (now.y + other.y) / 2 - box.top,
        );
      } else move(now.x - before.x, now.y - before.y);
      travel.current += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
      pointers.current.set(event.pointerId, now);
    },
    onPointerUp: (event: PointerEvent) => {
      pointers.current.delete(event.pointerId);
      setMoving(pointers.current.size > 0);
    },
    onPointerCancel: (event: PointerEvent) => {
      pointers.current.delete(event.pointerId);
      setMoving(pointers.current.size > 0);
    },
  };
  /** Whether what ends with a click was a drag. */
  const dragged = () => travel.current > STILL;
  return { camera, zoom, fit, move, moving, dragged, touched, handlers };
}
