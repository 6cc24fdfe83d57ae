"""Captures what bodies log and print, wherever they run. All of it is still passed on to where it went before.

A context variable names the owner of the output. So bodies on one loop are told apart, and `asyncio.to_thread` and tasks
belong to the body that made them. There is no owner while output is passed on: a log handler that prints, or a stream that
writes to another, is not captured twice.

Logging is captured where a logger calls its handlers, not by a handler of our own. One on the root logger would turn
`logging.basicConfig` into a no-op, silence Python's last resort for warnings, and be removed by the next `dictConfig`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, Protocol

from .log_lines import BodyOutput

CallHandlers = Callable[[logging.Logger, logging.LogRecord], None]


class OutputOwner(Protocol):
    def output(self) -> BodyOutput | None:
        """Where the output goes; None once it is no longer kept."""
        ...


_owner: ContextVar[OutputOwner | None] = ContextVar("stepwell_output_owner", default=None)
# A forked child has none of our threads, and may have inherited held locks: its output is not captured.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _owner.set(None))


capture_for: Callable[[OutputOwner | None], object] = _owner.set
"""Assign the output of this context to a body, or to none. Not wrapped in a function, because every body calls it."""


def refresh_capture() -> None:
    """Before bodies begin: wrap the streams again if something has replaced them (a live display, a test that captures)."""
    if type(sys.stdout) is not CapturedStream or type(sys.stderr) is not CapturedStream:
        _capture.wrap_streams()


KEPT_STREAMS = 200
"""How many replaced streams are kept alive: `print` of Python 3.11 and 3.12 holds no reference to the stream it writes to,
so a stream that another thread replaces meanwhile, as a closing engine or a capturing test does, must not be freed."""


class CapturedStream:
    """A text stream that passes everything on to another one, and gives the owner of the output a copy."""

    def __init__(self, name: str, stream: Any) -> None:
        self._name = name
        self._stream = stream

    def write(self, text: str) -> Any:
        owner = _owner.get()
        if owner is None:
            return self._stream.write(text)
        token = _owner.set(None)
        try:
            if isinstance(text, str):
                _tell(owner, lambda output: output.write(time.time_ns() // 1_000, self._name, text))
            return self._stream.write(text)
        except UnicodeError:
            raise
        except (OSError, ValueError):  # a body before this one has closed the stream of the process; the copy is kept
            return len(text)
        finally:
            _owner.reset(token)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if _owner.get() is None:
            self._stream.flush()
            return
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()

    def close(self) -> None:
        """A body cannot close what other bodies write to."""
        if _owner.get() is None:
            self._stream.close()
        else:
            self.flush()

    def detach(self) -> Any:
        return self._stream.detach() if _owner.get() is None else self._stream.buffer

    def __enter__(self) -> CapturedStream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __repr__(self) -> str:
        return repr(self._stream)


class _Capture:
    """One per process, as there is one stdout. Active while any runner is open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._hook: CallHandlers | None = None
        self._hooked: CallHandlers = logging.Logger.callHandlers
        self._kept: deque[CapturedStream] = deque(maxlen=KEPT_STREAMS)

    def open(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._hook_loggers()
        self.wrap_streams()

    def close(self) -> None:
        """Remove our hooks. If others have wrapped them meanwhile, ours stay below and only pass output on."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            if logging.Logger.callHandlers is self._hook:
                logging.Logger.callHandlers = self._hooked  # type: ignore[assignment, method-assign]
            for name in ("stdout", "stderr"):
                if type(stream := getattr(sys, name)) is CapturedStream:
                    setattr(sys, name, stream._stream)

    def wrap_streams(self) -> None:
        with self._lock:
            for name in ("stdout", "stderr") if self._users else ():
                stream = getattr(sys, name)
                if stream is not None and type(stream) is not CapturedStream:
                    wrapped = CapturedStream(name, stream)
                    self._kept.append(wrapped)
                    setattr(sys, name, wrapped)

    def _hook_loggers(self) -> None:
        hooked = self._hooked = logging.Logger.callHandlers

        def call_handlers(logger: logging.Logger, record: logging.LogRecord) -> None:
            owner = _owner.get()
            if owner is None:
                return hooked(logger, record)
            token = _owner.set(None)
            try:
                _tell(owner, lambda output: _log(output, record))
                return hooked(logger, record)
            finally:
                _owner.reset(token)

        self._hook = call_handlers
        logging.Logger.callHandlers = call_handlers  # type: ignore[assignment, method-assign]


_capture = _Capture()
start_capture, stop_capture = _capture.open, _capture.close
"""Capture until `stop_capture` has been called as often."""


def _tell(owner: OutputOwner, what: Callable[[BodyOutput], None]) -> None:
    """A body must not fail because capturing its output does."""
    with contextlib.suppress(Exception):
        output = owner.output()
        if output is not None:
            what(output)


def _log(output: BodyOutput, record: logging.LogRecord) -> None:
    at = int(record.created * 1_000_000)
    if output.full:
        output.drop(at)
    else:
        output.log(at, record.levelname, record.levelno, record.name, _text(record))


def _text(record: logging.LogRecord) -> str:
    """The message, and the traceback that goes with it."""
    try:
        text = record.getMessage()
    except Exception as error:  # the arguments do not fit, or str() fails; handlers will complain too
        text = f"(no message: {type(error).__name__}) {record.msg if isinstance(record.msg, str) else ''}"
    if record.exc_info and record.exc_info[0] is not None:
        text += "\n" + logging.Formatter().formatException(record.exc_info)
    if record.stack_info:
        text += f"\n{record.stack_info}"
    return text
