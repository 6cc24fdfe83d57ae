"""The port between a worker and what runs its bodies: an executor for each kind of body (`kinds.py`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, ClassVar, Protocol

from ...core.model import Settle
from .attempt import Attempt
from .held import Held


class WorkerPort(Protocol):
    """What an executor needs of the worker."""

    def count(self, kind: str) -> int:
        """How many bodies of a kind the worker holds, begun or not."""

    def attempt(self, held: Held) -> Attempt: ...

    def begins(self, attempt: Attempt) -> bool:
        """Whether this body may begin now: it may have been stopped or given back meanwhile."""

    def begins_owned(self, attempt: Attempt) -> bool:
        """The same for a body that its executor alone could have given back. Most of these need no lock."""

    def read_much(self) -> bool:
        """Whether bodies in this thread have read many megabytes of outputs since the thread last asked."""

    def settled(self, held: Held, settlement: Settle) -> None:
        """A body has ended."""

    def ended(self, held: Held, settlement: Settle) -> bool:
        """A body has ended in a thread that pumps next. True if the body overran, and another thread has replaced this one."""

    def pump(self, *, keep: bool = False) -> Held | None:
        """Commit everything, unless another thread leads a commit. With `keep`, return one body for this thread to run."""

    def commit_soon(self) -> None:
        """In a moment, have another thread call `call_if_stuck` and commit the settlements."""

    def go_on(self, attempt: Attempt, coroutine: Coroutine[Any, Any, Any]) -> bool:
        """A body returned a coroutine: run it on the loop. True as in `ended`."""

    def give_back(self, kind: str, bodies: Sequence[Held]) -> None:
        """These bodies cannot go on, and no other of this kind can begin."""


class Executor(ABC):
    """Runs the bodies of one kind."""

    kind: ClassVar[str]
    """Its name in `KINDS`."""
    lost = 0
    """How many bodies go on in a place that was replaced, because they overran their time limit and cannot be stopped."""

    @abstractmethod
    def __init__(self, worker: WorkerPort, limit: int) -> None:
        """At most `limit` bodies run at once."""

    def add(self, held: Held) -> None:  # noqa: B027  (most executors take bodies when they begin)
        """Take a body that was claimed; `begin` follows. The lock of the scheduler is held, so bodies come in the order of
        claims."""

    @abstractmethod
    def begin(self, bodies: list[Held], *, keep: bool) -> Held | None:
        """Start bodies that were added. With `keep`, one may be returned instead, for the caller's thread to run."""

    def take_back(self, held: Iterable[Held]) -> list[Held]:
        """Those of its bodies that have not begun. They never will. The lock of the scheduler is held."""
        return [body for body in held if not body.begun]

    def overran(self, held: Held) -> bool:
        """The time of a body is up. True if it cannot be stopped, so that its place must be replaced: `replace` follows."""
        return False

    def replace(self) -> None:  # noqa: B027
        """Replace the places of bodies that overran."""

    def came_back(self) -> None:  # noqa: B027
        """A body that overran has ended after all."""

    def look(self) -> None:  # noqa: B027
        """Called now and then."""

    @abstractmethod
    def close(self) -> None: ...
