"""Exit codes, which scripts rely on, and how an error becomes one of them and a line on stderr."""

from __future__ import annotations

import os
import sys
import traceback
from enum import IntEnum

import typer

from .. import errors
from ..base.words import error_text
from .streams import allow_early_close


class ExitCode(IntEnum):
    """What the exit code of a command says."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        made = int.__new__(cls, code)
        made._value_ = code
        made.meaning = meaning
        return made

    OK = 0, "all went well"
    RUN_FAILED = 1, "the run failed, or its replay differs"
    USAGE = 2, "wrong usage, bad input or broken code"
    NOT_FOUND = 3, "there is no such run"
    STORE = 4, "the store cannot be used (locked, full, read-only, newer, not there), or the server refuses"
    CANCELLED = 5, "the run was cancelled"
    CONFLICT = 6, "the state of the run forbids it, or it is paused until somebody decides"
    INTERNAL = 70, "an error in Stepwell itself"
    INTERRUPTED = 130, "interrupted by Ctrl-C; the run is kept"


_CODES: tuple[tuple[tuple[type[BaseException], ...], ExitCode], ...] = (
    ((errors.RunFailed, errors.ReplayMismatch), ExitCode.RUN_FAILED),
    ((errors.RunCancelled,), ExitCode.CANCELLED),
    ((errors.RunNotFound,), ExitCode.NOT_FOUND),
    ((errors.RunConflict, errors.RunPaused, errors.PipelineBusy), ExitCode.CONFLICT),
    ((errors.StoreError, errors.NotStored, errors.ServerError, errors.PipelineError), ExitCode.STORE),
    ((errors.InputError, errors.DefinitionError, errors.StateError), ExitCode.USAGE),
    ((errors.FrozenInstance, errors.UnrecordedCall, errors.UnsafePath), ExitCode.USAGE),
    ((errors.NodeNotFound, errors.DataMisfit, errors.MissingSecret), ExitCode.USAGE),
    ((OSError,), ExitCode.STORE),
    ((KeyboardInterrupt,), ExitCode.INTERRUPTED),
)
"""The first that fits."""


def code_for(error: BaseException) -> ExitCode:
    return next((code for kinds, code in _CODES if isinstance(error, kinds)), ExitCode.INTERNAL)


def report(error: BaseException) -> ExitCode:
    """Print an error on stderr, with a traceback only if STEPWELL_DEBUG is set, and return the exit code."""
    if os.environ.get("STEPWELL_DEBUG", "") not in ("", "0"):
        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt):
        complain("interrupted")
    elif isinstance(error, errors.StepwellError):
        complain(_told(error))
    elif isinstance(error, OSError):
        complain(f"the system refused: {error_text(error)}")
    else:
        complain(f"{error_text(error)}\n  this is an error in Stepwell; STEPWELL_DEBUG=1 shows where it was raised")
    return code_for(error)


def complain(message: str) -> None:
    """`error: message` on stderr, the first word in red on a terminal."""
    from .show.words import plain  # help and completion need no words

    typer.echo(f"{typer.style('error:', fg='red', bold=True)} {plain(message)}", err=True)


def _told(error: errors.StepwellError) -> str:
    """The message, and for code that could not be imported the line that raised."""
    cause = error.__cause__
    if not isinstance(error, errors.DefinitionError) or cause is None:
        return str(error)
    if isinstance(cause, errors.DefinitionError):  # it shows its own line
        return _told(cause)
    place = raised_at(cause)
    return f"{error}\n  raised at {place}" if place else str(error)


def raised_at(error: BaseException) -> str | None:
    """The file and line in the user's code where an exception was raised."""
    if isinstance(error, SyntaxError) and error.filename:
        return _place(error.filename, error.lineno or 0)
    frames = traceback.extract_tb(error.__traceback__)
    own = os.path.dirname(os.path.dirname(__file__)) + os.sep
    theirs = [frame for frame in frames if not frame.filename.startswith(("<frozen", own))]
    return _place(theirs[-1].filename, theirs[-1].lineno or 0) if theirs else None


def _place(file: str, line: int) -> str:
    relative = os.path.relpath(file)
    return f"{file if relative.startswith(os.pardir) else relative}:{line}"


def prepare_streams() -> None:
    """Make sure that a closed stream, or a character that the terminal cannot encode, does not end a command."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # It takes the lowest free descriptor, so that no store is opened where others expect a stream.
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    allow_early_close()
