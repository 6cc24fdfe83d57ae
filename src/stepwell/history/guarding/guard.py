"""The guard: inside a body it refuses what would not be the same in a replay.

It watches calls as a profiler does (`sys.setprofile`), so it sees the function and not the name it is called by:
`from time import time` and `datetime.now`, whose class cannot be patched, are seen like everything else, no module is changed,
and other threads are not affected. A context variable tells whether the running code belongs to a guarded body, so on the
event loop only its own tasks are affected.

A profiler belongs to one thread. A call that a body hands to another thread is seen at that moment: to an executor, to a new
thread, to another loop. It is wrapped so that the other thread is watched until the call is done.

The guard cannot see calls made by C code (`map(time.time, ...)`, a generator of numpy), calls that reach other threads in other
ways, and programs that were started before. What the garbage collector calls is ignored: it finalizes objects of anybody, in
whatever thread it runs. The guard replaces another profiler while it watches.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextvars import Context, ContextVar
from types import BuiltinFunctionType, FrameType, TracebackType
from typing import Any

from ...errors import UnrecordedCall
from ..effects.recorder import inside
from .arguments import arguments_of
from .blame import Blame, blame
from .refusals import ALWAYS, BUILTINS, FUNCTIONS, Entry, RefusedCall

_guarding: ContextVar[guard | None] = ContextVar("stepwell_guard", default=None)
_watched = threading.local()


class guard:
    """Inside it, code may use the clock, randomness, the network and other programs only through `ctx`.

        with guard("charge"):
            time.time()         # UnrecordedCall: node 'charge' called time.time at shop.py:12 ...

    A refusal that the body swallowed is raised again at the end. `everywhere`: also in threads that it starts without its
    context, and in what still runs after its end.
    """

    def __init__(self, node: str = "(none)", *, everywhere: bool = False) -> None:
        self._node = node
        self.everywhere = everywhere
        self.over = False
        """Whether nothing is refused any more."""
        self._first_refusal: UnrecordedCall | None = None

    def __enter__(self) -> guard:
        self.over = False
        self._thread = threading.get_ident()
        self._token = _guarding.set(self)
        _watch(_see)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over = not self.everywhere
        if kind is GeneratorExit and threading.get_ident() != self._thread:
            return  # a coroutine that is discarded in another thread: there is nothing to undo here
        _unwatch()
        with contextlib.suppress(ValueError):  # the same in another context
            _guarding.reset(self._token)
        if self._first_refusal is not None and (error is None or not _stems_from(error, self._first_refusal)):
            raise self._first_refusal from error

    def refuse(self, refused: RefusedCall, frame: FrameType) -> UnrecordedCall | None:
        """The error to raise in this frame, which is about to make the call; None when an exempt module calls."""
        culprit = blame(frame, refused.exempt)
        if culprit is None:
            return None
        error = UnrecordedCall(
            culprit.called or refused.function,
            node=self._node,
            where=culprit.where,
            instead=refused.instead,
            through=culprit.through,
        )
        self._first_refusal = self._first_refusal or error
        return error


def guarded_call(call: Callable[[], Any], node: str, *, everywhere: bool = False) -> Any:
    """Call a body under guard. The coroutine of an `async def` is guarded wherever it runs, with all its tasks."""
    watching = guard(node, everywhere=everywhere)
    with watching:
        result = call()
    return _guarded(result, watching) if isinstance(result, Coroutine) else result


async def _guarded(coroutine: Coroutine[Any, Any, Any], watching: guard) -> Any:
    with watching:
        return await coroutine


def _stems_from(error: BaseException, refused: UnrecordedCall) -> bool:
    at: BaseException | None = error
    while at is not None:
        if at is refused:
            return True
        at = at.__cause__ or at.__context__
    return False


# Watching a thread


@contextlib.contextmanager
def watched_thread() -> Iterator[None]:
    """Inside it, what bodies have left behind in this thread is watched too, also between bodies."""
    _watch(_see)
    try:
        yield
    finally:
        _unwatch()


def _watch(see: Callable[[FrameType, str, Any], None]) -> None:
    depth = getattr(_watched, "depth", 0)
    if depth == 0:
        _watched.before = sys.getprofile()
    sys.setprofile(see if depth == 0 else _see)
    _watched.depth = depth + 1


def _unwatch() -> None:
    _watched.depth -= 1
    if _watched.depth == 0:
        before = _watched.before
        sys.setprofile(before if callable(before) else None)
        if hasattr(before, "enable"):  # a profiler written in C, such as cProfile's, is set by itself
            before.enable()


def _keep_watching(frame: FrameType) -> None:
    """Python drops a profiler that raises, but the body may catch the refusal and go on.

    A tracer learns of the exception before anybody can catch it. So for that moment there is one, which restores the profiler.
    """
    see, tracer = sys.getprofile(), sys.gettrace()
    traced = [
        (traced_frame, traced_frame.f_trace) for traced_frame in (frame, frame.f_back) if traced_frame is not None
    ]

    def again(at: FrameType, event: str, argument: Any) -> None:
        sys.settrace(tracer)
        for traced_frame, before in traced:
            traced_frame.f_trace = before
        sys.setprofile(see)

    for traced_frame, _ in traced:
        traced_frame.f_trace = again
    sys.settrace(again)


def _see(frame: FrameType, event: str, called: Any) -> None:
    if event == "c_call":
        check = BUILTINS.get(called.__name__)
        if check is not None:
            refused = check(called, functools.partial(arguments_of, frame))
            if refused is not None:
                _refuse(refused, frame, frame)
    elif event == "call":
        entry = _ENTRIES.get(frame.f_code.co_name)
        if entry is not None:
            refused = entry(frame)
            if refused is not None and frame.f_back is not None:
                _refuse(refused, frame.f_back, frame)


def _refuse(refused: RefusedCall, caller: FrameType, frame: FrameType) -> None:
    watching = _active()
    error = None if watching is None else watching.refuse(refused, caller)
    if error is not None:
        _keep_watching(frame)
        raise error


def _active() -> guard | None:
    """The guard of the running code; None inside an effect, and in what the garbage collector calls."""
    watching = _guarding.get()
    if watching is None or watching.over or inside.get() or getattr(_watched, "collecting", False):
        return None
    return watching


def _note_collection(phase: str, info: dict[str, int]) -> None:
    _watched.collecting = phase == "start"


gc.callbacks.append(_note_collection)


# What a body has other threads do


class _HandedCall:
    """A function that a guarded body hands to another thread, which is watched while it runs."""

    def __init__(self, function: Callable[..., Any], watching: guard, handed_by: Blame, *, carries: bool) -> None:
        self._function = function
        self._watching = watching
        self._handed_by = handed_by
        self._carries = carries
        """Whether it takes the guard along; otherwise only what runs in the body's context is guarded."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        handed_by = self._handed_by
        assert handed_by is not None, "`blame` reads this variable"
        token = _guarding.set(self._watching) if self._carries else None
        _watch(self._see)
        try:
            self._check(*_innermost(self._function, args))
            return self._function(*args, **kwargs)
        finally:
            _unwatch()
            if token is not None:
                _guarding.reset(token)

    def _see(self, frame: FrameType, event: str, called: Any) -> None:
        if self._watching.over:
            sys.setprofile(None)  # the body has ended, but this thread of some library goes on, perhaps for ever
        else:
            _see(frame, event, called)

    def _check(self, function: Any, args: tuple[Any, ...]) -> None:
        """A C function that is handed over directly is called by C code, which the profiler does not see."""
        check = BUILTINS.get(function.__name__) if isinstance(function, BuiltinFunctionType) else None
        refused = None if check is None else check(function, lambda: args)
        if refused is not None and self._carries:
            error = self._watching.refuse(refused._replace(exempt=()), sys._getframe(1))
            if error is not None:
                raise error


def _innermost(function: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The function that is called in the end, and its arguments: `asyncio.to_thread` wraps them twice."""
    if isinstance(function, functools.partial):
        return _innermost(function.func, (*function.args, *args))
    if isinstance(getattr(function, "__self__", None), Context) and args:
        return _innermost(args[0], args[1:])
    return function, args


async def _watched_coroutine(coroutine: Coroutine[Any, Any, Any], handed_by: Blame) -> Any:
    """The same for a coroutine, whose task has the body's context."""
    with watched_thread():
        return await coroutine


def _call_handed_over(module: str, argument: str) -> Callable[[FrameType], None]:
    """Handles a function of a module, one of whose arguments another thread will call."""

    def hand_over(frame: FrameType) -> None:
        if frame.f_globals.get("__name__") != module:
            return
        watching = _active()
        handed_by = None if watching is None else blame(frame, ALWAYS)
        if watching is None or handed_by is None or _goes_to_a_process(frame):
            return
        arguments = frame.f_locals
        function = arguments[argument]
        if asyncio.iscoroutine(function):
            arguments[argument] = _watched_coroutine(function, handed_by)
        elif not isinstance(function, _HandedCall):
            arguments[argument] = _HandedCall(function, watching, handed_by, carries=True)

    return hand_over


def _goes_to_a_process(frame: FrameType) -> bool:
    pools = sys.modules.get("multiprocessing.pool")
    owner = frame.f_locals.get("self")
    return pools is not None and isinstance(owner, pools.Pool) and not isinstance(owner, pools.ThreadPool)


def _thread_starts(frame: FrameType) -> None:
    """Handles `Thread.start`. A thread of a pool is watched only while it runs what this body handed over."""
    watching = _active() if frame.f_code is threading.Thread.start.__code__ else None
    if watching is None or _serves_many(frame):
        return
    handed_by, thread = blame(frame, ALWAYS), frame.f_locals["self"]
    if handed_by is not None:
        vars(thread)["run"] = _HandedCall(thread.run, watching, handed_by, carries=watching.everywhere)


def _serves_many(frame: FrameType) -> bool:
    at = frame.f_back
    while at is not None and at.f_globals.get("__name__") == "multiprocessing.dummy":
        at = at.f_back
    return at is not None and at.f_globals.get("__name__") in _POOLS


_POOLS = ("concurrent.futures.thread", "multiprocessing.pool", "anyio._backends._asyncio")
_HANDING: dict[str, Callable[[FrameType], None]] = {
    "start": _thread_starts,
    "submit": _call_handed_over("concurrent.futures.thread", "fn"),
    "run_coroutine_threadsafe": _call_handed_over("asyncio.tasks", "coro"),
    "run_sync_in_worker_thread": _call_handed_over("anyio._backends._asyncio", "func"),
    **dict.fromkeys(
        ("apply_async", "_map_async", "imap", "imap_unordered"), _call_handed_over("multiprocessing.pool", "func")
    ),
}
"""Python functions that hand something to another thread, by name."""
_ENTRIES: dict[str, Entry] = {**FUNCTIONS, **_HANDING}
