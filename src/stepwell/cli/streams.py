"""stdout is for what a command was asked for, and nothing else.

Code of others prints: bodies, modules while they are imported, threads and programs that bodies start. So, before any of it
can, what they know as stdout is made to lead to stderr, down to the file descriptor that processes inherit; the real stdout is
kept for `say` and whoever asks for `results`.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO

import typer

_OUT, _ERR = 1, 2


class _Kept:
    """The real stdout, once it is kept from others."""

    stream: TextIO | None = None
    former: TextIO | None = None
    """What was `sys.stdout`: without a reference it would close the descriptor."""


def keep_stdout() -> None:
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
    _Kept.former = sys.stdout
    _Kept.stream = os.fdopen(own, "w", encoding=encoding, errors=errors)
    # Whole lines, also with PYTHONUNBUFFERED: what is printed now stands between the lines of stderr.
    sys.stdout = os.fdopen(_OUT, "w", buffering=1, encoding=encoding, errors=errors, closefd=False)


def results() -> TextIO:
    """Where results go."""
    return _Kept.stream or sys.stdout


def say(text: str, *, end: str = "\n") -> None:
    """Write a result, or a part of it."""
    typer.echo(f"{text}{end}", nl=False, file=results())
