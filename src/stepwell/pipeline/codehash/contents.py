"""The code that an object of a library holds: what a decorator wrapped, what was registered, what a list or dict contains."""

from __future__ import annotations

import functools
import gc
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from ...base.words import shown

MOST_OBJECTS = 2_000
"""How many objects of libraries are looked at; an application object leads to everything in its process."""
_DEPTH = 4
_PLAIN = (str, bytes, int, float, bool, complex, type(None), type(...))
_NOT_ENTERED = (type, types.ModuleType, types.FrameType, types.CodeType, weakref.ref, weakref.WeakKeyDictionary)


def project_code_in(thing: object, is_project: Callable[[object], bool]) -> list[Any]:
    """Return the functions, classes and instances of the project that `thing` holds, in an order that only code changes.

    Functions and containers are searched to the end. Other objects of libraries are searched only if these hold nothing, and
    only as far as the nearest code: what is further away belongs to the application, not to this object.
    """
    seen: dict[int, object] = {}
    code: list[Any] = []
    level = _structure([thing], is_project, seen, code)
    for _ in range(_DEPTH):
        if code or not level or len(seen) > MOST_OBJECTS:
            break
        level = _structure([each for thing in level for each in gc.get_referents(thing)], is_project, seen, code)
    return code


def _structure(
    things: Iterable[object], is_project: Callable[[object], bool], seen: dict[int, object], code: list[Any]
) -> list[object]:
    """Add the code of the project to `code`. Return objects of libraries whose attributes were not searched."""
    objects = []
    waiting = list(things)
    while waiting:
        thing = waiting.pop(0)
        if id(thing) in seen or thing is None or isinstance(thing, str | bytes | int | float | complex):
            continue
        seen[id(thing)] = thing
        is_code = isinstance(thing, types.FunctionType | type)
        if (is_code and is_project(thing)) or (not is_code and is_project(type(thing))):
            code.append(thing)
        elif (parts := parts_of(thing)) is not None:
            waiting += parts
        elif not isinstance(thing, _NOT_ENTERED):
            objects.append(thing)
    return objects


def parts_of(thing: Any) -> list[object] | None:
    """Return what a function or container consists of. None for other objects."""
    if isinstance(thing, types.FunctionType):
        return [
            *cells(thing).values(),
            *(thing.__defaults__ or ()),
            *(thing.__kwdefaults__ or {}).values(),
            *thing.__dict__.values(),
        ]
    if isinstance(thing, types.CellType):
        return list(_content(thing))
    if isinstance(thing, dict | types.MappingProxyType):
        return [*thing.keys(), *thing.values()]
    if isinstance(thing, set | frozenset):
        return sorted(thing, key=lambda each: str(getattr(each, "__qualname__", each.__class__.__qualname__)))
    if isinstance(thing, list | tuple):
        return list(thing)
    if isinstance(thing, types.MethodType):
        return [thing.__func__, thing.__self__]
    if isinstance(thing, functools.partial | functools.partialmethod):
        return [thing.func, *thing.args, *thing.keywords.values()]
    if isinstance(thing, staticmethod | classmethod):
        return [thing.__func__]
    if isinstance(thing, property):
        return [thing.fget, thing.fset, thing.fdel]
    wrapped = getattr(thing, "__wrapped__", None)  # functools.cache and its like
    if callable(wrapped) and not isinstance(thing, type):
        return [wrapped, *getattr(thing, "__dict__", {}).values()]
    return None


def cells(function: types.FunctionType) -> dict[str, object]:
    """Return the variables that a function takes from functions around it, as far as they have values."""
    closure = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: value for name, cell in closure for value in _content(cell)}


def _content(cell: types.CellType) -> tuple[object, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # its variable has no value yet, or no more
        return ()


def defaults_of(function: types.FunctionType) -> dict[str, object]:
    """Return the defaults of a function by parameter."""
    code, defaults = function.__code__, function.__defaults__ or ()
    positional = code.co_varnames[: code.co_argcount]
    return {
        **dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True)),
        **(function.__kwdefaults__ or {}),
    }


def attributes_of(thing: object) -> dict[str, object]:
    """Return the attributes of an object by name, those in slots too."""
    slots = [
        name
        for kind in type(thing).__mro__
        for name, member in vars(kind).items()
        if isinstance(member, types.MemberDescriptorType)
    ]
    return {**getattr(thing, "__dict__", {}), **{name: getattr(thing, name) for name in slots if hasattr(thing, name)}}


def items_of(value: Any) -> list[tuple[str, object]]:
    """Return what a container holds, with names for its places."""
    if isinstance(value, dict):
        return [pair for key, each in value.items() for pair in ((f"{shown(key)} key", key), (shown(key), each))]
    return [(str(at), each) for at, each in enumerate(parts_of(value) or ())]


def plain_text(value: object, depth: int = 0) -> str | None:
    """Return plain data as a text that is the same on every machine, or None for other values."""
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__}:{value!r}"
    if depth > 20:
        return None
    if isinstance(value, tuple | list | set | frozenset):
        inner = [plain_text(each, depth + 1) for each in value]
        if None in inner:
            return None
        ordered = sorted(map(str, inner)) if isinstance(value, set | frozenset) else inner
        return f"{type(value).__name__}[{','.join(map(str, ordered))}]"
    if isinstance(value, dict):
        pairs = [(plain_text(key, depth + 1), plain_text(each, depth + 1)) for key, each in value.items()]
        if any(None in pair for pair in pairs):
            return None
        return "dict{" + ",".join(f"{key}={each}" for key, each in sorted(pairs, key=str)) + "}"
    return None
