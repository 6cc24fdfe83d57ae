"""Workflows whose bodies a test holds, breaks and lets go, node by node."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from stepwell import Context, Run, Workflow, task
from tests.engine.waiting import eventually

Parents = str | tuple[str, ...] | None
_NUMBERS = itertools.count()


class Play:
    """What the bodies of a workflow do: those in `held` wait, those in `broken` raise, the others return their name."""

    def __init__(self, *, held: str = "", broken: str = "", ignoring_stops: str = "") -> None:
        self.name = f"Play{next(_NUMBERS)}"
        self.held = set(held.split())
        self.broken = set(broken.split())
        self.ignoring_stops = set(ignoring_stops.split())
        """Those that do not stop when they are asked to."""
        self.entered: Counter[str] = Counter()
        self.keys: dict[str, list[str]] = {}

    def body(self, name: str) -> Callable[[Workflow, Context], str]:
        def run(own: Workflow, ctx: Context) -> str:
            self.entered[name] += 1
            self.keys.setdefault(name, []).append(ctx.idempotency_key)
            until = time.monotonic() + 60
            while name in self.held and time.monotonic() < until:
                if name not in self.ignoring_stops:
                    ctx.check()
                time.sleep(0.002)
            if name in self.broken:
                raise ValueError(f"{name} is broken")
            return name

        run.__name__ = run.__qualname__ = name
        return run

    def workflow(
        self, on_failure: str = "fail_fast", options: dict[str, Any] | None = None, **nodes: Parents
    ) -> Workflow:
        """`workflow(a=None, b="a", c=("a", "b"))`; `options` are those of every node."""
        made = {name: task(depends_on=parents, **(options or {}))(self.body(name)) for name, parents in nodes.items()}
        return type(Workflow)(self.name, (Workflow,), made, on_failure=on_failure)()  # type: ignore[no-any-return]

    def begins(self, *names: str) -> None:
        eventually(lambda: all(self.entered[name] for name in names), "it never began", show=lambda: self.entered)

    def release(self, *names: str) -> None:
        self.held.difference_update(names)


def statuses(run: Run) -> dict[str, str]:
    return {node.id: str(node.status) for node in run.nodes(removed=True)}


def becomes(run: Run, **nodes: str) -> None:
    """Wait until these nodes have these statuses."""
    eventually(
        lambda: all(run.node(name).status == status for name, status in nodes.items()), show=lambda: statuses(run)
    )


def attempts(run: Run, node: str) -> list[str]:
    return [str(attempt.status) for attempt in run.node(node).attempts]
