"""stdout is for the result of a command, and nothing else.

User code may print: bodies, imported modules, threads and programs. So, before any of it runs, stdout is redirected to stderr,
including the file descriptor that programs inherit. Only `say` and `results` use the real stdout.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any, TextIO

import typer

if TYPE_CHECKING:
    from typing_extensions import Buffer

_OUT, _ERR = 1, 2
_OBEYED = re.compile(r"[\x7f-\x9f]")
"""Control characters that JSON may hold as they are, and terminals obey."""


class _ClosableOutput(io.FileIO):
    """A descriptor whose reader may close it, as `head` does: this ends the command without an error."""

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())  # for what is still to be flushed
            os.close(nowhere)
            raise typer.Exit from None


def _text(descriptor: int, like: TextIO, *, closefd: bool) -> TextIO:
    raw = io.BufferedWriter(_ClosableOutput(descriptor, "w", closefd=closefd))
    return io.TextIOWrapper(raw, like.encoding, like.errors, line_buffering=raw.isatty())


class _Kept:
    """The real stdout, once it is kept from others."""

    stream: TextIO | None = None
    former: tuple[TextIO, ...] = ()
    """The original `sys.stdout`, which would close the descriptor if it were collected."""


def allow_early_close() -> None:
    """Allow the reader of stdout to close it early."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.fileno() == _OUT:
        _Kept.former += (sys.stdout,)
        sys.stdout = _text(_OUT, sys.stdout, closefd=False)


def reserve_stdout() -> None:
    """From now on only `say` and `results` write to stdout. Where one of the two streams is closed, nothing changes."""
    if _Kept.stream is not None or not isinstance(sys.stdout, io.TextIOWrapper) or sys.stderr is None:
        return
    sys.stdout.flush()
    try:
        own = os.dup(_OUT)
        os.dup2(_ERR, _OUT)
    except OSError:
        return
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    _Kept.former += (sys.stdout,)
    _Kept.stream = _text(own, sys.stdout, closefd=True)
    # Line by line, also with PYTHONUNBUFFERED, because it is now mixed with the lines of stderr.
    sys.stdout = os.fdopen(_OUT, "w", buffering=1, encoding=encoding, errors=errors, closefd=False)


def results() -> TextIO:
    """Where results go."""
    return _Kept.stream or sys.stdout


def say(text: str, *, end: str = "\n") -> None:
    """Write a result, or a part of it."""
    typer.echo(f"{text}{end}", nl=False, file=results())


def json_text(value: Any) -> str:
    """JSON in characters that stdout can carry."""
    utf8 = (results().encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, indent=2, ensure_ascii=not utf8)
    return _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
