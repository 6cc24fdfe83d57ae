"""An exception as plain data: what is recorded of it, and what decides on a retry."""

from __future__ import annotations

import contextlib
import traceback
from typing import NamedTuple

from ...base.clock import MAX_SECONDS
from ...base.codec import clean
from ...base.importable import exception_name
from ...base.masking import mask
from ...base.words import class_names, message_of, short_name
from ...core.kernel.settling import Later
from ...define.code.conditions import RAISED_BY_CONDITION
from ...errors import DataMisfit, MissingJob, PermanentError, RetryLater, Stopped, TransientError

MAX_TRACEBACK = 16_000


class Raised(NamedTuple):
    """An exception that ended a body or other code of the user."""

    names: list[str]
    type: str
    message: str
    traceback: str
    later: Later | None
    stopped: bool
    missing: str | None = None
    """Why the node's job cannot be found, if that is the error."""
    permanent: bool = False
    retry_after: float | None = None
    unfit: bool = False
    """The stored data does not fit what the body asks for."""

    @property
    def summary(self) -> str:
        return f"{self.type}: {self.message}"

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        """Never raises: an exception is code of the user, and what cannot be read from it is left out."""
        kind, message = type(error), message_of(error)
        message += _where(error)
        later = None
        if issubclass(kind, RetryLater):
            later = _later(error)
            if later is None:
                message += _NO_SECONDS
        missing = _missing_reason(error) if issubclass(kind, MissingJob) else None
        return cls(
            _names(kind),
            clean(short_name(kind)),
            clean(mask(message))[:MAX_TRACEBACK],
            clean(_traceback(error))[:MAX_TRACEBACK],
            later,
            issubclass(kind, Stopped),
            missing,
            issubclass(kind, PermanentError),
            _retry_after(error) if issubclass(kind, TransientError) else None,
            issubclass(kind, DataMisfit),
        )


def _where(error: BaseException) -> str:
    """That it was raised by a condition, and not by a body."""
    try:
        notes = [str(note) for note in error.__notes__]
    except BaseException:
        return ""
    return next((f" ({note})" for note in notes if note.startswith(RAISED_BY_CONDITION)), "")


def _names(kind: type[BaseException]) -> list[str]:
    """The class and its bases, named as in `retry_on`. Their metaclasses are code of the user, and may raise."""
    found = class_names(kind)
    for place, base in enumerate(type.__getattribute__(kind, "__mro__")):
        with contextlib.suppress(BaseException):
            found[place] = exception_name(base)
    return found


_NO_SECONDS = (
    "\n  a RetryLater without `seconds`, a number from 0 up, is an ordinary error: "
    "does it call super().__init__(seconds)?"
)


def _later(error: BaseException) -> Later | None:
    """What a RetryLater asks for; None if it has no valid `seconds`, as when a subclass did not call `super().__init__`."""
    try:
        seconds = float(error.seconds)  # type: ignore[attr-defined]
    except OverflowError:
        seconds = MAX_SECONDS
    except BaseException:
        return None
    try:
        limit = int(error.limit)  # type: ignore[attr-defined]
    except BaseException:
        limit = RetryLater.LIMIT
    return Later(seconds, limit) if seconds >= 0 else None


def _retry_after(error: BaseException) -> float | None:
    """For how many seconds a TransientError says not to try again; None if it does not say."""
    try:
        seconds = float(error.retry_after)  # type: ignore[attr-defined]
    except BaseException:
        return None
    return seconds if seconds >= 0 else None


def _missing_reason(error: BaseException) -> str | None:
    try:
        return mask(error.reason) if error.run_id is None else None  # type: ignore[attr-defined]
    except BaseException:  # a subclass of the user may lack them
        return None


def _traceback(error: BaseException) -> str:
    """The traceback from the frame of the body on, without the engine's own frames."""
    try:
        frames = error.__traceback__
        while frames is not None and str(frames.tb_frame.f_globals.get("__name__")).startswith("stepwell."):
            frames = frames.tb_next
    except BaseException:  # the exception hides its traceback
        return ""
    if frames is None:
        return ""
    try:
        lines = traceback.format_exception(type(error), error, frames)
    except BaseException:  # the exception cannot be formatted, but its frames can
        lines = [*traceback.format_tb(frames), f"{short_name(type(error))}: {message_of(error)}\n"]
    text = mask("".join(lines))
    return text if len(text) <= MAX_TRACEBACK else "... " + text[-MAX_TRACEBACK + 4 :]
