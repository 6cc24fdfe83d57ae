"""When a worker looks for suspects: nodes that may have killed their workers, and are claimed alone."""

from __future__ import annotations

DRAIN_FOR = 10_000_000
"""Microseconds. For this long a worker claims nothing, so that a suspect can run alone; then it runs beside what is left."""


class Suspects:
    """Where one worker still has to look for suspects, and how many it holds."""

    __slots__ = ("draining_since", "held", "scopes", "waited")

    def __init__(self) -> None:
        self.scopes: list[str] = []
        """Where to look: in the runs it knows (`known`), in all runs of the workflows it serves (`served`)."""
        self.held = 0
        self.waited = False
        """It has waited long enough for the other bodies to end."""
        self.draining_since: int | None = None

    def look(self) -> None:
        """Look for a node that may have killed several workers, as soon as nothing else runs here."""
        self.scopes = ["known", "served"]

    def draining(self) -> bool:
        """Whether nothing else is claimed until a suspect was."""
        return self.draining_since is not None

    def drain(self, now: int) -> None:
        """There is a suspect: claim nothing else until it is claimed, or it has waited long enough."""
        self.look()
        if self.draining_since is None:
            self.draining_since = now

    def stop_draining(self) -> None:
        self.draining_since = None

    def update(self, now: int) -> None:
        """Find out whether it has waited long enough."""
        since = self.draining_since
        self.waited = since is not None and now - since >= DRAIN_FOR

    def next_scope(self) -> str:
        scope = self.scopes.pop(0)
        if not self.scopes:
            self.draining_since = None  # the last scope
        return scope
