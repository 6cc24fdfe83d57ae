"""Finds the line of code that calls what a guarded body may not call."""

from __future__ import annotations

import asyncio
import sysconfig
from types import FrameType
from typing import NamedTuple

HANDED_BY = "handed_by"
"""The variable, in a frame of the guard in another thread, that says which line handed over the call."""

_GUARD = "stepwell.history.guarding.guard"
_OURS = ("stepwell",)
_CALLING = (_GUARD, "stepwell.define")
"""The only modules between the guard and a body."""
_STEP = asyncio.Handle._run.__code__
_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_SITES = ("site-packages", "dist-packages")


class Blame(NamedTuple):
    where: str
    called: str | None
    """The function of the standard library through which it was called."""
    through: str | None
    """The library through which it was called."""


def blame(frame: FrameType, exempt: tuple[str, ...]) -> Blame | None:
    """Who called it; None when an exempt module did."""
    at: FrameType | None = frame
    where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
    called = through = library = None
    while at is not None and at.f_code is not _STEP:  # below a task is the loop, which did not call it
        module, file = at.f_globals.get("__name__", ""), at.f_code.co_filename
        handed_by = at.f_locals.get(HANDED_BY) if module == _GUARD else None
        if handed_by is not None:
            return Blame(handed_by.where, called, through or handed_by.through)
        if belongs(module, _OURS):
            if not _calls_the_body(at):
                return None
            break  # only a library is left to name
        if through is None and belongs(module, exempt):
            return None
        where = f"{file}:{at.f_lineno}"
        if any(site in file for site in _SITES):
            through, library = through or module.partition(".")[0], library or where
        elif not file.startswith((*_STANDARD, "<frozen")):
            return Blame(where, called, through)
        elif through is None:
            called = _display_name(module, at)
        at = at.f_back
    return Blame(library or where, called, through)


def _display_name(module: str, frame: FrameType) -> str:
    called = f"{module}.{frame.f_code.co_qualname}"
    if called.startswith("random.Random."):  # what the module offers are methods of a hidden generator
        return f"random.{frame.f_code.co_name}" if frame.f_code.co_name != "__init__" else "random.Random"
    return called


def _calls_the_body(frame: FrameType) -> bool:
    """Whether this frame of Stepwell runs the body, and was not called by it."""
    at: FrameType | None = frame
    while at is not None and belongs(at.f_globals.get("__name__", ""), _CALLING):
        if at.f_globals["__name__"] == _GUARD:
            return True
        at = at.f_back
    return False


def belongs(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)
