"""The part of `ctx` that makes a body repeatable: randomness, time, ids and effects; and whose body the running code is.

A context variable tells bodies on one loop apart; tasks and `asyncio.to_thread` belong to the body that made them. A thread
that a body starts does not, unless it is given the body's context.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from ...base.masking import mask
from ...core.model.lines import KEY_BEGINS
from ...errors import InputError, Stopped
from .recorder import Call, inside

if TYPE_CHECKING:
    from uuid import UUID

MAX_LABEL = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FROM_ARGUMENTS: Any = object()
_lock = threading.Lock()
"""Threads of one body may ask at once. One lock for all bodies will do: it is held only for a moment."""


class Outside(Protocol):
    """Answers a body that asks for the time or an effect: a recorder, or a player in a replay."""

    def now(self) -> int:
        """Microseconds since 1970."""
        ...

    def effect(self, call: Call) -> Any: ...

    def checkpoint(self, label: str) -> None: ...

    def leave(self) -> None:
        """The body has ended."""
        ...


class Repeatable:
    """What `ctx` gives a body instead of the clock, chance and the network.

    Randomness and ids come from the run's seed and the node, so every attempt at a node draws the same ones, and so does a
    replay. The time and the responses of effects are recorded.
    """

    __slots__ = ("_outside", "_random", "_uuids")

    def __init__(self) -> None:
        self._outside: Outside | None = None
        self._random: Random | None = None
        self._uuids = 0

    # What subclasses know

    @property
    def seed(self) -> int:
        """The seed of the run."""
        raise NotImplementedError

    @property
    def _identity(self) -> str:
        """The first name of the node, which it keeps when it is renamed."""
        raise NotImplementedError

    def _open_outside(self) -> Outside:
        raise NotImplementedError

    def _check_effects_allowed(self, name: str) -> None:
        raise NotImplementedError

    # What bodies use

    @property
    def random(self) -> Random:
        """A `random.Random` of this node: the same numbers in every attempt and in a replay.

        winner = ctx.random.choice(sorted(entries))
        """
        if self._random is None:
            with _lock:
                if self._random is None:
                    self._random = Random(int.from_bytes(self._digest("random")))
        return self._random

    def uuid(self) -> UUID:
        """A UUID of this node: the first, second, ... are the same in every attempt and in a replay."""
        from uuid import UUID

        with _lock:
            number, self._uuids = self._uuids, self._uuids + 1
        return UUID(bytes=self._digest(f"uuid:{number}")[:16], version=4)

    def now(self) -> datetime:
        """The time, in UTC, recorded for replay. It never goes back within an attempt."""
        return _EPOCH + timedelta(microseconds=self._environment().now())

    def effect(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        request: Any = _FROM_ARGUMENTS,
        durable: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Call `function(*args, **kwargs)` and record what it was asked and what it answered.

            rate = ctx.effect("exchange rate", fetch_rate, "EUR", "USD")
            page = await ctx.effect("page", fetch_page, url)                # an `async def` is awaited
            paid = ctx.effect("charge", charge, card, amount, request={"order": order_id}, durable=True)

        `request` says what identifies the request where the arguments are not JSON or are too much; the response must be
        JSON. `durable=True` stores the response before the body gets it: a later attempt is given it instead of a call.
        """
        self._check_effects_allowed(name)
        if not callable(function):
            raise InputError(f"effect {name!r}: expected a function and then its arguments, got {function!r}")
        identity = _arguments(args, kwargs) if request is _FROM_ARGUMENTS else request
        return self._environment().effect(Call(_masked_name(name), function, args, kwargs, identity, durable))

    def checkpoint(self, label: str) -> None:
        """Name how the run stands when this node has completed: `run.checkpoint(label)` and `run.fork(label)` find it.

        ctx.checkpoint("paid")
        """
        if not isinstance(label, str) or not label.strip() or len(label) > MAX_LABEL or not label.isprintable():
            raise InputError(f"the label of a checkpoint needs 1 to {MAX_LABEL} printable characters, not {label!r}")
        if label.startswith(KEY_BEGINS):
            raise InputError(f"the label {label!r} would be taken for the key of a checkpoint: let it begin otherwise")
        self._environment().checkpoint(label)

    def _leave(self) -> None:
        """The body has ended."""
        if self._outside is None:
            self._outside = _ENDED_BODY
        else:
            self._outside.leave()

    def perform(self, call: Call) -> Any:
        """The same for recorders of a library, such as `stepwell.history.httpx`."""
        self._check_effects_allowed(call.name)
        name = _masked_name(call.name)
        return self._environment().effect(call if name == call.name else call._replace(name=name))

    def _environment(self) -> Outside:
        if self._outside is None:
            with _lock:
                if self._outside is None:
                    self._outside = self._open_outside()
        return self._outside

    def _digest(self, purpose: str) -> bytes:
        return sha256(f"{self.seed}\0{self._identity}\0{purpose}".encode("utf-8", "surrogatepass")).digest()


_body: ContextVar[Repeatable | None] = ContextVar("stepwell_body", default=None)
# A forked child has none of our threads: what it does is not recorded.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _body.set(None))

enter: Callable[[Repeatable | None], object] = _body.set
"""From now on this context belongs to this body, or to none. Not a Python function, because it is called for every body."""


def current() -> Repeatable | None:
    """The body whose effects are to be recorded; None outside of bodies, and inside an effect."""
    return None if inside.get() else _body.get()


class _EndedBody:
    """Refuses threads and tasks of a body that has ended without asking anything."""

    def _refuse(self, *arguments: Any) -> NoReturn:
        raise Stopped("the body has ended: what its threads and tasks still ask is not recorded")

    now = effect = checkpoint = _refuse

    def leave(self) -> None:
        """It has."""


_ENDED_BODY = _EndedBody()


def _masked_name(name: str) -> str:
    """Masked before it is counted, so that effects are counted by their recorded names."""
    return mask(name) if isinstance(name, str) else name  # what is not a name is refused later


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    if args:
        arguments["args"] = args
    if kwargs:
        arguments["kwargs"] = kwargs
    return arguments
