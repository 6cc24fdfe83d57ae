"""Exceptions of effects: turned into data when they are recorded, and made again when the record is served.

The record has the names of the class and its bases, the message, the constructor arguments and attributes that are JSON, and
the exceptions of a group.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType
from typing import Any, NamedTuple

from ...base.codec import clean, text
from ...base.words import class_names, message_of

MAX_GROUPS = 20
"""How deep groups within groups are recorded; deeper ones are empty."""


class EffectError(NamedTuple):
    """The exception that an effect raised."""

    type: str
    """`module.Name` of its class."""
    message: str
    args: list[Any] | None
    """Its constructor arguments; None when they are not JSON."""
    bases: list[str]
    """`module.Name` of its class and all bases."""
    attributes: Mapping[str, Any] = {}
    """Those that are JSON."""
    exceptions: tuple[EffectError, ...] = ()
    """Of a group."""

    def __str__(self) -> str:
        return f"{self.type.removeprefix('builtins.')}: {self.message}"

    def data(self) -> dict[str, Any]:
        """As it was recorded."""
        record: dict[str, Any] = {"bases": self.bases, "message": self.message, "type": self.type}
        if self.args is not None:
            record["args"] = self.args
        if self.attributes:
            record["attributes"] = self.attributes
        if self.exceptions:
            record["exceptions"] = [member.data() for member in self.exceptions]
        return record


def error_of(data: Mapping[str, Any]) -> EffectError:
    """What `EffectError.data` gave."""
    return EffectError(
        data["type"],
        data["message"],
        data.get("args"),
        data.get("bases", []),
        data.get("attributes", {}),
        tuple(map(error_of, data.get("exceptions", ()))),
    )


# Recording


def error_raised(error: BaseException, groups: int = MAX_GROUPS) -> EffectError:
    """An exception as it is recorded. Never raises: what cannot be read from the exception is left out."""
    bases = [clean(name) for name in class_names(type(error))[:-1]]
    is_group = issubclass(type(error), BaseExceptionGroup) and groups
    inner = _safely(lambda: tuple(error.exceptions)) if is_group else ()  # type: ignore[attr-defined]
    members = tuple(error_raised(member, groups - 1) for member in inner or () if isinstance(member, BaseException))
    own = _safely(lambda: dict(error.__dict__)) or {}
    attributes = {name: value for name, value in own.items() if _is_json({name: value})}
    return EffectError(bases[0], clean(message_of(error)), _constructor_arguments(error), bases, attributes, members)


def _constructor_arguments(error: BaseException) -> list[Any] | None:
    """The arguments that make it again, if they are JSON."""
    if issubclass(type(error), BaseExceptionGroup):
        message = _safely(lambda: error.message)  # type: ignore[attr-defined]
        return [message] if isinstance(message, str) and _is_json(message) else None
    # More than `args`: an OSError also has file names.
    reduced: tuple[Any, ...] = _safely(lambda: tuple(error.__reduce__())) or ()
    args = reduced[1] if len(reduced) > 1 and reduced[0] is type(error) else _safely(lambda: error.args)
    return list(args) if isinstance(args, tuple) and _is_json(args) else None


def _safely(call: Callable[[], Any]) -> Any:
    """The result of asking an exception; None when it raises instead."""
    try:
        return call()
    except BaseException:
        return None


def _is_json(value: object) -> bool:
    try:
        text(value)
    except BaseException:  # NotJson, or anything that a strange value raises
        return False
    return True


# Raising it again


def exception_of(error: EffectError) -> BaseException:
    """The exception that an effect raised, or one of its base classes if its class is gone. Imports nothing."""
    for name in (error.type, *error.bases):
        kind = _imported_class(name)
        exception = None if kind is None else _construct(kind, error)
        if exception is not None:
            return exception
    return Exception(error.message)


def _imported_class(name: str) -> type[BaseException] | None:
    """The class of this name, if its module was imported."""
    module, _, _ = name.rpartition(".")
    while module and module not in sys.modules:
        module, _, _ = module.rpartition(".")
    value: Any = sys.modules.get(module)
    for part in name[len(module) + 1 :].split("."):
        value = getattr(value, part, None)
    return value if isinstance(value, type) and issubclass(value, BaseException) else None


def _construct(kind: type[BaseException], error: EffectError) -> BaseException | None:
    args = (error.message,) if error.args is None else tuple(error.args)
    if issubclass(kind, BaseExceptionGroup):
        if not error.exceptions:
            return None  # Python has no empty ones
        args = (args[0], [exception_of(member) for member in error.exceptions])
    try:
        exception = kind(*args)
        vars(exception).update(error.attributes)
        if str(exception) == error.message:
            return exception
    except Exception:  # its constructor takes other arguments
        pass
    try:
        exception = _construct_bare(_subclass_for(kind, error), args)
        exception.args = args
        vars(exception).update(error.attributes)
    except Exception:
        return None
    return exception


def _construct_bare(kind: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """Made by Python's own `__new__`, without code of the class or its bases."""
    exception: BaseException = next(
        new for base in kind.__mro__ if isinstance(new := vars(base).get("__new__"), BuiltinFunctionType)
    )(kind, *args)
    return exception


def _subclass_for(kind: type[BaseException], error: EffectError) -> type[BaseException]:
    """A subclass, so that it is caught as before, of a class whose `__init__` cannot make the exception again."""

    def message(self: BaseException) -> str:
        return error.message

    def missing(self: BaseException, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"{error.type} has no {name!r} here: it comes from the record of an effect, which has those attributes of an "
            "exception that are JSON"
        )

    return type(kind.__name__, (kind,), {"__str__": message, "__getattr__": missing, "__module__": kind.__module__})
