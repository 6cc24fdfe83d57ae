"""What a guarded body may not call, and what to use instead."""

from __future__ import annotations

import os
import random
import socket
import ssl
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from datetime import date
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeAlias

from .arguments import UNKNOWN


class RefusedCall(NamedTuple):
    function: str
    instead: str
    exempt: tuple[str, ...]
    """Modules that may call it for themselves."""


_CLOCK = "ask ctx.now()"
_CHANCE = "use ctx.random, or ctx.uuid() for an id"
_NETWORK = "wrap it: ctx.effect('name', function, ...), or give httpx the transport of stepwell.history.httpx"
_PROCESS = "wrap it: ctx.effect('name', function, ...)"
_THREAD = "start it with threading.Thread, which is watched, or wrap it: ctx.effect('name', function, ...)"

ALWAYS = ("stepwell", "logging", "importlib", "_frozen_importlib", "_frozen_importlib_external", "zipimport")
"""Modules that may call everything for themselves."""
# They need it for timeouts and names that a body does not see. http.cookiejar asks which cookies have expired.
_THREADS = ("asyncio", "threading", "concurrent", "queue", "selectors", "multiprocessing")
_INNER = (*ALWAYS, *_THREADS, "tempfile", "http.cookiejar")
# httpx draws the boundary of an upload and the nonce of a digest, which do not identify a request.
_DRAWING = (*_INNER, "httpx._multipart", "httpx._auth")

GetArguments: TypeAlias = Callable[[], tuple[Any, ...] | None]
"""Gives the arguments of a call, as far as they are known."""
Check: TypeAlias = Callable[[Any, GetArguments], RefusedCall | None]
"""Judges a C function that is about to be called."""
Entry: TypeAlias = Callable[[FrameType], RefusedCall | None]
"""Judges a Python function whose frame begins."""

BUILTINS: dict[str, Check] = {}
"""C functions by their own names."""
FUNCTIONS: dict[str, Entry] = {}
"""Python functions by their own names, not by code: a code object takes long to hash."""


def _refuse_functions(
    name: str, *functions: str, instead: str, exempt: tuple[str, ...] = _INNER, shown_as: str = ""
) -> None:
    """C functions of a module."""
    module = sys.modules.get(name)
    for function in functions:
        function_object = getattr(module, function, None)
        if function_object is not None:
            refused = RefusedCall(f"{shown_as or name}.{function}", instead, exempt)
            _add_check(function_object.__name__, _refuse_only(function_object, refused))


def _refuse_only(function: Any, refused: RefusedCall) -> Check:
    return lambda called, arguments: refused if called == function else None


def _add_check(name: str, check: Check) -> None:
    other = BUILTINS.get(name)

    def either(called: Any, arguments: GetArguments) -> RefusedCall | None:
        return (other(called, arguments) if other is not None else None) or check(called, arguments)

    BUILTINS[name] = check if other is None else either


def _python(code: CodeType, entry: Entry) -> None:
    before = FUNCTIONS.get(code.co_name)

    def check(frame: FrameType) -> RefusedCall | None:
        if frame.f_code is code:
            return entry(frame)
        return None if before is None else before(frame)

    FUNCTIONS[code.co_name] = check


def _always(function: str, instead: str, exempt: tuple[str, ...]) -> Entry:
    refused = RefusedCall(function, instead, exempt)
    return lambda frame: refused


# What the arguments of a function of `time` tell: whether it asks the clock, and which one


def _refuse_time_function(
    name: str, condition: str, asks: Callable[[tuple[Any, ...]], bool], exempt: tuple[str, ...] = _INNER
) -> None:
    """A function of `time` that is refused when it is called with arguments that ask the wall clock."""
    function, refused = getattr(time, name, None), RefusedCall(f"time.{name} {condition}", _CLOCK, exempt)

    def check(called: Any, arguments: GetArguments) -> RefusedCall | None:
        values = arguments() if called == function else None
        return refused if values is not None and asks(values) else None

    if function is not None:
        _add_check(name, check)


def _without_time(arguments: int) -> Callable[[tuple[Any, ...]], bool]:
    """Whether the time after so many arguments is left out, or None."""
    return lambda values: len(values) <= arguments or values[arguments] is None


_WALL_CLOCKS = {
    getattr(time, name) for name in ("CLOCK_REALTIME", "CLOCK_TAI", "CLOCK_REALTIME_COARSE") if hasattr(time, name)
} | ({5, 8} if sys.platform == "linux" else set())  # the coarse one and the one for alarms, which Python does not name


def _of_wall_clock(values: tuple[Any, ...]) -> bool:
    """Clocks that only count seconds are left alone."""
    return bool(values) and values[0] is not UNKNOWN and values[0] in _WALL_CLOCKS


# What the object tells that a method belongs to


def _refuse_methods(owns: Callable[[Any], str | None], instead: str, exempt: tuple[str, ...]) -> Check:
    """`owns` names the object if its methods are refused."""

    def check(called: Any, arguments: GetArguments) -> RefusedCall | None:
        name = owns(called.__self__)
        return None if name is None else RefusedCall(f"{name}.{called.__name__}", instead, exempt)

    return check


def _date(owner: Any) -> str | None:
    return owner.__name__ if isinstance(owner, type) and issubclass(owner, date) else None


_SHARED = random.random.__self__  # type: ignore[attr-defined]  # the generator behind the functions of the module


def _socket(owner: Any) -> str | None:
    return "socket" if isinstance(owner, socket.SocketType) else None


def _connection(owner: Any) -> str | None:
    """A connection that was there before. Pairs of sockets inside a process are nobody's network."""
    is_network = isinstance(owner, socket.SocketType) and owner.family in (socket.AF_INET, socket.AF_INET6)
    return "socket" if is_network else None


# On Windows such a pair is a connection, and loops have one.
_PAIRED = ("asyncio", "socket") if sys.platform == "win32" else ()
_UNSEEDED = RefusedCall("random.seed without a seed", _CHANCE, _INNER)


def _fill() -> None:
    _refuse_functions("time", "time", "time_ns", instead=_CLOCK)
    for name in ("clock_gettime", "clock_gettime_ns"):
        _refuse_time_function(name, "of the wall clock", _of_wall_clock)
    for name in ("localtime", "gmtime", "asctime"):
        _refuse_time_function(name, "without a time", _without_time(0))
    _refuse_time_function("ctime", "without a time", _without_time(0), _DRAWING)
    _refuse_time_function("strftime", "without a time", _without_time(1))
    for name in ("now", "utcnow", "today"):
        _add_check(name, _refuse_methods(_date, _CLOCK, _INNER))
    shared = _refuse_methods(lambda owner: "random" if owner is _SHARED else None, _CHANCE, _INNER)
    for name in ("random", "getrandbits"):
        _add_check(name, shared)
    _refuse_functions("os", "urandom", instead=_CHANCE, exempt=_DRAWING)
    _refuse_functions("os", "getrandom", instead=_CHANCE)
    for name in ("uuid1", "uuid4", "uuid6", "uuid7"):
        if hasattr(uuid, name):
            _python(getattr(uuid, name).__code__, _always(f"uuid.{name}", "use ctx.uuid()", _INNER))
    _python(random.Random.seed.__code__, lambda frame: _UNSEEDED if frame.f_locals.get("a") is None else None)
    for name in ("connect", "connect_ex", "sendto"):
        _add_check(name, _refuse_methods(_socket, _NETWORK, ALWAYS))
    for name in ("send", "sendall", "sendmsg", "recv", "recv_into", "recvfrom", "recvfrom_into", "recvmsg", "_accept"):
        _add_check(name, _refuse_methods(_connection, _NETWORK, (*ALWAYS, *_PAIRED)))
    for name in ("send", "write", "read"):  # their calls of C are those of a class that nobody can tell from files
        _python(getattr(ssl.SSLSocket, name).__code__, _always(f"ssl.SSLSocket.{name}", _NETWORK, ALWAYS))
    hosts = ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr", "getnameinfo")
    _refuse_functions("_socket", *hosts, instead=_NETWORK, exempt=ALWAYS, shown_as="socket")
    _python(subprocess.Popen.__init__.__code__, _always("subprocess.Popen", _PROCESS, ALWAYS))
    programs = ("system", "fork", "forkpty", "posix_spawn", "posix_spawnp", "execv", "execve", "startfile")
    _refuse_functions(os.__name__, *programs, instead=_PROCESS, exempt=ALWAYS)
    _refuse_functions("_posixsubprocess", "fork_exec", instead=_PROCESS, exempt=ALWAYS)  # as multiprocessing does
    threads = ("start_new_thread", "start_new", "start_joinable_thread")
    _refuse_functions("_thread", *threads, instead=_THREAD)


_fill()
