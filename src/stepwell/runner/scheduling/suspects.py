"""When a worker looks for suspects: nodes that may have killed their workers, which are claimed alone."""

from __future__ import annotations

DRAIN_FOR = 10_000_000
"""For so many microseconds at most nothing is claimed so that a suspect can run alone. Then it runs beside what is left."""


class Suspects:
    """Where one worker still has to look for suspects, and whether it holds one."""

    __slots__ = ("_draining_since", "held", "scopes", "waited")

    def __init__(self) -> None:
        self.scopes: list[str] = []
        """Where to look: among the runs it knows, among those it serves."""
        self.held = 0
        self.waited = False
        """It has waited long enough for what else is held."""
        self._draining_since: int | None = None

    def look(self) -> None:
        """Some node may have lost several workers: look for it as soon as nothing else is at work."""
        self.scopes = ["known", "served"]

    def draining(self) -> bool:
        """Nothing more is claimed until a suspect was."""
        return self._draining_since is not None

    def drain(self, now: int) -> None:
        """There is a suspect: claim nothing else until it has its turn."""
        self.look()
        if self._draining_since is None:
            self._draining_since = now

    def stop_draining(self) -> None:
        self._draining_since = None

    def turn(self, now: int) -> None:
        since = self._draining_since
        self.waited = since is not None and now - since >= DRAIN_FOR

    def next_scope(self) -> str:
        scope = self.scopes.pop(0)
        if not self.scopes:
            self._draining_since = None  # it is the last place to look in
        return scope
