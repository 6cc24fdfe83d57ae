"""The registry of types of other libraries. It is global, because a type is the same everywhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from ...errors import DefinitionError

Value = TypeVar("Value")


class Foreign(NamedTuple):
    """How a type is kept: `encode` gives JSON, `decode` takes it."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


_registered: dict[type, Foreign] = {}
_lock = threading.Lock()
_listeners: list[Callable[[], None]] = []
registered: Mapping[type, Foreign] = MappingProxyType(_registered)


def register(cls: type[Value], encode: Callable[[Value], Any], decode: Callable[[Any], Value]) -> None:
    """Teach a type: `encode` makes JSON-able data of a value, `decode` makes the value of that data again.

        stepwell.types.register(Money, lambda money: {"amount": str(money.amount), "currency": money.currency},
                                lambda data: Money(Decimal(data["amount"]), data["currency"]))

    Write it beside the class, at the top level of its module: every process that imports the module then knows it. What is
    registered takes the place of what Stepwell would do with the type by itself. Registering a type again replaces what
    was said before.
    """
    if not isinstance(cls, type):
        raise DefinitionError(f"types.register({cls!r}, ...): expected a class")
    for name, function in (("encode", encode), ("decode", decode)):
        if not callable(function):
            raise DefinitionError(f"types.register({cls.__qualname__}, ...): {name}={function!r} cannot be called")
    with _lock:
        _registered[cls] = Foreign(encode, decode)
        for forget in _listeners:
            forget()


def when_registered(forget: Callable[[], None]) -> None:
    """Call `forget` whenever a type is registered."""
    with _lock:
        _listeners.append(forget)
