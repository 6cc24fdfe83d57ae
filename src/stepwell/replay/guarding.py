"""The guard: inside a body it refuses what would not be the same in a replay.

It watches calls as a profiler does (`sys.setprofile`), so it sees the function that is called and not the name it is called
by: `from time import time` and `datetime.now` of a class that cannot be patched are seen like everything else, nothing of
anybody's modules is replaced, and other threads are not touched. A context variable tells whether the code that calls is that
of a guarded body, so on the event loop only its own tasks are affected.

What it cannot see: calls that C code makes by itself (`map(time.time, ...)`, a generator of numpy), threads that a body
starts without its context, and programs that were started before. It takes the place of another profiler while it watches.
"""

from __future__ import annotations

import asyncio
import dis
import random
import socket
import subprocess
import sys
import sysconfig
import threading
import time
import uuid
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from datetime import date
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple, TypeAlias

from ..errors import UnrecordedCall
from .current import inside


class Refused(NamedTuple):
    """Something a guarded body may not call."""

    function: str
    instead: str
    exempt: tuple[str, ...]
    """Modules that may call it for themselves."""


_CLOCK = "ask ctx.now()"
_CHANCE = "use ctx.random, or ctx.uuid() for an id"
_NETWORK = "wrap it: ctx.effect('name', function, ...), or give httpx the transport of stepwell.replay.httpx"
_PROCESS = "wrap it: ctx.effect('name', function, ...)"

_ALWAYS = ("stepwell", "logging", "importlib", "_frozen_importlib", "_frozen_importlib_external", "zipimport")
# Their own timeouts and names, which a body does not get to see. http.cookiejar asks which cookies have expired.
_INNER = (
    *_ALWAYS,
    "asyncio",
    "threading",
    "concurrent",
    "queue",
    "selectors",
    "multiprocessing",
    "tempfile",
    "http.cookiejar",
)

Check: TypeAlias = Callable[[Any, FrameType], Refused | None]
"""Looks at a function that is about to be called in a frame."""

_guarding: ContextVar[guard | None] = ContextVar("stepwell_guard", default=None)
_watched = threading.local()


class guard:
    """Until it is left, this code may ask the clock, chance, the network and other programs only through `ctx`.

        with guard("charge"):
            time.time()         # UnrecordedCall: node 'charge' called time.time at shop.py:12 ...

    A refusal that the body swallowed is raised again at the end.
    """

    def __init__(self, node: str = "(none)") -> None:
        self._node = node
        self._refused: UnrecordedCall | None = None

    def __enter__(self) -> guard:
        self._token = _guarding.set(self)
        _watch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _unwatch()
        _guarding.reset(self._token)
        if self._refused is not None and (error is None or not _stems_from(error, self._refused)):
            raise self._refused from error

    def refuse(self, refused: Refused, frame: FrameType) -> UnrecordedCall | None:
        """What to raise in this frame, which is about to call it; None when somebody exempt calls it."""
        found = _culprit(frame, refused.exempt)
        if found is None:
            return None
        error = UnrecordedCall(
            found.called or refused.function,
            node=self._node,
            where=found.where,
            instead=refused.instead,
            through=found.through,
        )
        self._refused = self._refused or error
        return error


async def guarded(coroutine: Coroutine[Any, Any, Any], node: str) -> Any:
    """The same for a coroutine, and for all tasks that it makes."""
    with guard(node):
        return await coroutine


def _stems_from(error: BaseException, refused: UnrecordedCall) -> bool:
    at: BaseException | None = error
    while at is not None:
        if at is refused:
            return True
        at = at.__cause__ or at.__context__
    return False


# Watching a thread


def _watch() -> None:
    depth = getattr(_watched, "depth", 0)
    if depth == 0:
        _watched.before = sys.getprofile()
        sys.setprofile(_see)
    _watched.depth = depth + 1


def _unwatch() -> None:
    _watched.depth -= 1
    if _watched.depth == 0:
        sys.setprofile(_watched.before)


def _watch_on_soon() -> None:
    """Python does not call a profiler again that has raised. That this body did it is known, but a loop has other tasks."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    again = loop.call_soon(_watch_again)
    ready = getattr(loop, "_ready", None)
    if ready and ready[-1] is again:
        ready.rotate(1)  # before any other task


def _watch_again() -> None:
    if getattr(_watched, "depth", 0):
        sys.setprofile(_see)


def _see(frame: FrameType, event: str, called: Any) -> None:
    if event == "c_call":
        check = _BUILTINS.get(called.__name__)
        refused = None if check is None else check(called, frame)
    elif event == "call":
        found = _FUNCTIONS.get(frame.f_code)
        refused = None if found is None else found(frame)
    else:
        return
    if refused is None:
        return
    watching = _guarding.get()
    if watching is None or inside.get():
        return
    caller = frame if event == "c_call" else frame.f_back
    error = None if caller is None else watching.refuse(refused, caller)
    if error is not None:
        _watch_on_soon()
        raise error


# What is refused


def _of_module(name: str, *functions: str, instead: str, exempt: tuple[str, ...] = _INNER) -> None:
    """Functions of a module that are written in C."""
    module = sys.modules[name]
    for function in functions:
        known = getattr(module, function, None)
        if known is not None:
            refused = Refused(f"{name.removeprefix('_')}.{function}", instead, exempt)
            _when(known.__name__, _same(known, refused))


def _same(known: Any, refused: Refused) -> Check:
    return lambda called, frame: refused if called == known else None


def _when(name: str, check: Check) -> None:
    before = _BUILTINS.get(name)
    _BUILTINS[name] = check if before is None else lambda called, frame: before(called, frame) or check(called, frame)


def _asking_the_clock(name: str, arguments: int) -> None:
    """A function of `time` that is given a time; called with no more than so many arguments it asks the clock for one."""
    known, refused = getattr(time, name), Refused(f"time.{name} without a time", _CLOCK, _INNER)

    def check(called: Any, frame: FrameType) -> Refused | None:
        return refused if called == known and _arguments(frame) <= arguments else None

    _when(name, check)


def _arguments(frame: FrameType) -> int:
    """How many arguments a frame is about to call something with, as far as its bytecode says."""
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at + 1] if dis.opname[code[at]] in ("CALL", "PRECALL") else sys.maxsize


def _python(code: CodeType, function: str, instead: str, exempt: tuple[str, ...]) -> None:
    refused = Refused(function, instead, exempt)
    _FUNCTIONS[code] = lambda frame: refused


_BUILTINS: dict[str, Check] = {}
"""Functions written in C, by the name they were given where they were written."""
_FUNCTIONS: dict[CodeType, Callable[[FrameType], Refused | None]] = {}


def _dates(called: Any, frame: FrameType) -> Refused | None:
    owner = called.__self__
    if isinstance(owner, type) and issubclass(owner, date):
        return Refused(f"{owner.__name__}.{called.__name__}", _CLOCK, _INNER)
    return None


def _global_generator(called: Any, frame: FrameType) -> Refused | None:
    if called.__self__ is _SHARED:
        return Refused(f"random.{called.__name__}", _CHANCE, _INNER)
    return None


def _sockets(called: Any, frame: FrameType) -> Refused | None:
    if isinstance(called.__self__, socket.SocketType):
        return Refused(f"socket.{called.__name__}", _NETWORK, _ALWAYS)
    return None


def _unseeded(frame: FrameType) -> Refused | None:
    return _UNSEEDED if frame.f_locals.get("a") is None else None


_SHARED = random.random.__self__  # type: ignore[attr-defined]  # the generator behind the functions of the module
_UNSEEDED = Refused("random.seed without a seed", _CHANCE, _INNER)


def _fill() -> None:
    _of_module("time", "time", "time_ns", instead=_CLOCK)
    for name, arguments in (("localtime", 0), ("gmtime", 0), ("ctime", 0), ("asctime", 0), ("strftime", 1)):
        _asking_the_clock(name, arguments)
    for name in ("now", "utcnow", "today"):
        _when(name, _dates)
    for name in ("random", "getrandbits"):
        _when(name, _global_generator)
    _of_module("os", "urandom", "getrandom", instead=_CHANCE)
    for name in ("uuid1", "uuid4"):
        _python(getattr(uuid, name).__code__, f"uuid.{name}", "use ctx.uuid()", _INNER)
    _FUNCTIONS[random.Random.seed.__code__] = _unseeded
    for name in ("connect", "connect_ex", "sendto"):
        _when(name, _sockets)
    _of_module("_socket", "getaddrinfo", "gethostbyname", "gethostbyname_ex", instead=_NETWORK, exempt=_ALWAYS)
    _python(subprocess.Popen.__init__.__code__, "subprocess.Popen", _PROCESS, _ALWAYS)
    names = ("system", "fork", "forkpty", "posix_spawn", "posix_spawnp", "execv", "execve", "startfile")
    _of_module("os", *names, instead=_PROCESS, exempt=_ALWAYS)


_fill()


# Who calls


_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_SITES = ("site-packages", "dist-packages")


class Culprit(NamedTuple):
    where: str
    called: str | None
    """The function of the standard library that it called, which called what is refused."""
    through: str | None
    """The library it went through."""


def _culprit(frame: FrameType, exempt: tuple[str, ...]) -> Culprit | None:
    """Who tried; None when it is the business of somebody exempt."""
    at: FrameType | None = frame
    called = through = library = None
    while at is not None:
        module, file = at.f_globals.get("__name__", ""), at.f_code.co_filename
        where = f"{file}:{at.f_lineno}"
        if _belongs(module, exempt if through is None else ("stepwell",)):
            break  # or the body was called from here, and nobody but a library is left to name
        if any(site in file for site in _SITES):
            through, library = through or module.partition(".")[0], library or where
        elif not file.startswith((*_STANDARD, "<frozen")):
            return Culprit(where, called, through)
        elif through is None:
            called = f"{module}.{at.f_code.co_qualname}"
            if called.startswith("random.Random."):  # what the module offers are methods of a hidden generator
                called = f"random.{at.f_code.co_name}" if at.f_code.co_name != "__init__" else "random.Random"
        at = at.f_back
    return None if library is None else Culprit(library, called, through)


def _belongs(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)
