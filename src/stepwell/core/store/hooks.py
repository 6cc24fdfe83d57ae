"""What is called after the commits of a store: listeners, feeds and whatever else follows what this process does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

from ..model import Answer, Batch

AfterCommit = Callable[[Batch, Answer], None]
"""Gets the ops of a commit and what the store answered. It must not commit, wait or raise."""
_CONCURRENTLY = nullcontext()
Committed = TypeVar("Committed", Answer, Answer | None)


class CommitHooks:
    """The hooks of one store. The store makes each of its commits through `around`."""

    __slots__ = ("_hooks", "_ordered", "in_order")

    def __init__(self) -> None:
        self._hooks: tuple[AfterCommit, ...] = ()
        self._ordered = False
        self.in_order = threading.Lock()
        """Held from before a commit until its hooks were called, if one of them wants commits in their order."""

    def add(self, hook: AfterCommit, *, in_order: bool = False) -> None:
        """Call this after each commit from now on. `in_order`: one commit after the other, which costs concurrency."""
        with self.in_order:
            self._hooks = (*self._hooks, hook)
            self._ordered = self._ordered or in_order

    def around(self, commit: Callable[[Batch], Committed], batch: Batch) -> Committed:
        """Commit a batch by this function, and call the hooks unless it answers None, which says that nothing was applied."""
        if not self._hooks:
            return commit(batch)
        with self.in_order if self._ordered else _CONCURRENTLY:
            hooks = self._hooks  # those of now: a hook that is added meanwhile may want commits in order
            answer = commit(batch)
            if answer is not None:
                for hook in hooks:
                    hook(batch, answer)
        return answer
