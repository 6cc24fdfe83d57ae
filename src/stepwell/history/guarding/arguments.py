"""The arguments of the call that a frame is about to make, as far as its bytecode tells.

A profiler learns which C function is called, but not its arguments. Constants, variables and attributes of modules can be
looked up; the result of any other expression cannot.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

UNKNOWN: Final = object()
"""An argument that the bytecode does not tell."""

_CALLS = ("CALL", "PRECALL")
_BESIDE = ("CACHE", "PRECALL", "KW_NAMES", "PUSH_NULL", "EXTENDED_ARG")
"""Instructions between an argument and its call that load nothing."""


class _ArgumentLoading(NamedTuple):
    """How the arguments of one call are found."""

    number: int | None
    """How many there are; None when they are unpacked from the last value."""
    last: tuple[dis.Instruction, ...]
    """What loads the last one: a constant or a variable, then attributes; empty if it is not that simple."""


def arguments_of(frame: FrameType) -> tuple[Any, ...] | None:
    """The positional arguments, each of which may be UNKNOWN; None when not even their number is known."""
    plan = _plan(frame.f_code, frame.f_lasti)
    if plan is None or plan.number == 0:
        return None if plan is None else ()
    last = _value(frame, plan.last)
    if plan.number is not None:
        return (*(UNKNOWN,) * (plan.number - 1), last)
    return tuple(last) if isinstance(last, (tuple, list)) else None


@functools.lru_cache(maxsize=512)
def _plan(code: CodeType, at: int) -> _ArgumentLoading | None:
    before = [instruction for instruction in dis.get_instructions(code) if instruction.offset <= at]
    if not before:
        return None
    call = before.pop()
    if call.opname not in (*_CALLS, "CALL_FUNCTION_EX"):
        return None
    joined = call.is_jump_target
    while before and before[-1].opname in _BESIDE:
        joined = before.pop().is_jump_target or joined
    number = call.arg if call.opname in _CALLS else None
    return _ArgumentLoading(
        number, () if joined else _loads(before)
    )  # where branches meet, it may be one of several values


def _loads(before: Sequence[dis.Instruction]) -> tuple[dis.Instruction, ...]:
    """The instructions at the end that load one value."""
    end = len(before)
    for place in range(end - 1, -1, -1):
        instruction = before[place]
        if instruction.is_jump_target and place != end - 1:
            return ()
        if instruction.opname != "LOAD_ATTR":
            return tuple(before[place:end]) if instruction.opname.startswith("LOAD_") else ()
    return ()


def _value(frame: FrameType, loads: Sequence[dis.Instruction]) -> Any:
    if not loads:
        return UNKNOWN
    value = _variable(frame, loads[0])
    for load in loads[1:]:
        if not isinstance(value, types.ModuleType):  # anything else may run code to find its attribute
            return UNKNOWN
        value = vars(value).get(load.argval, UNKNOWN)
    return value


def _variable(frame: FrameType, load: dis.Instruction) -> Any:
    if load.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
        return load.argval
    name = load.argval
    if load.opname == "LOAD_GLOBAL":
        places: tuple[Any, ...] = (frame.f_globals, frame.f_builtins)
    elif load.opname == "LOAD_NAME":
        places = (frame.f_locals, frame.f_globals, frame.f_builtins)
    elif load.opname.startswith("LOAD_FAST") or load.opname in ("LOAD_DEREF", "LOAD_CLASSDEREF"):
        places = (frame.f_locals,)
    else:
        return UNKNOWN
    return next((place[name] for place in places if name in place), UNKNOWN) if isinstance(name, str) else UNKNOWN
