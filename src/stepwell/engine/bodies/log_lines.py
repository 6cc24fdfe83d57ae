"""What bodies log and print: split into lines, masked, cut, counted, and kept until it is stored.

Plain decisions, without threads, clocks or stores. Bodies print from many threads, so there are locks. `worker/runner.py` says
when lines are due, and `scheduler.py` takes them.
"""

from __future__ import annotations

import math
import operator
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from ...base.codec import clean
from ...base.ids import AttemptId
from ...base.masking import longest, mask
from ...base.words import shown
from ...core.model import MARK, Append
from ...core.model.lines import LOG, PROGRESS, LogLine, Progress
from ...errors import InputError

LINE_UP_TO = 8_192
"""Characters of one line. Of a longer one, the beginning and the end are kept."""
LINES_UP_TO = 1_000
"""Lines of one attempt."""
BYTES_UP_TO = 1024 * 1024
"""Bytes of one attempt."""
WAITING_UP_TO = 32 * 1024 * 1024
"""Bytes that may wait for the store, for all attempts of a worker together."""
TAKEN_UP_TO = 1_000
"""Lines in one commit, besides those of attempts that it settles, so that no settlement waits for them."""
UNFINISHED_UP_TO = 2 * LINE_UP_TO
MESSAGE_UP_TO = 300
NAME_UP_TO = 300
"""Characters of the name of a logger or level."""
_TAIL = 2_048
_INFO = 20


class BodyOutput:
    """The output of one attempt. Subclasses decide where its lines go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unfinished: dict[str, str] = {}
        """By stream: what was written after the last line break."""
        self._lines = self._bytes = 0
        self._at = 0
        """When the body last wrote something."""
        self._closed = False
        self.dropped = 0
        """How many lines were written but not kept."""
        self._progress: tuple[Any, Any, Any] | None = None

    @property
    def full(self) -> bool:
        return self._lines >= LINES_UP_TO or self._bytes >= BYTES_UP_TO

    def log(self, at: int, level: str, severity: int, logger: str, text: str) -> None:
        with self._lock:
            self._line(LogLine(at, clean(level[:NAME_UP_TO]), severity, clean(logger[:NAME_UP_TO]), text))

    def drop(self, at: int) -> None:
        """Count a line that cannot be kept."""
        with self._lock:
            self._drop(at, 1)

    def write(self, at: int, stream: str, text: str) -> None:
        """Add text from stdout or stderr: any number of lines, the last one perhaps unfinished."""
        with self._lock:
            if self._closed:
                return
            if self.full:
                self._drop(at, text.count("\n"))
                return
            *ended, rest = text.split("\n")
            for piece in ended:
                begun = self._unfinished.pop(stream, "")
                whole = begun if len(begun) == UNFINISHED_UP_TO else begun + piece
                self._line(LogLine(at, "INFO", _INFO, stream, _shown(whole)))
            if rest:
                self._at = at
                begun = self._unfinished.get(stream, "") + rest  # of which only what can still matter is kept
                self._unfinished[stream] = (_shown(begun) + "\r" * begun.endswith("\r"))[:UNFINISHED_UP_TO]

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Note how far the body is. Only the latest report counts, so it is not encoded before it is stored."""
        if not _finite(done) or (total is not None and not _finite(total)):
            raise InputError(f"progress({shown(done)}, {shown(total)}): both must be finite numbers")
        # Convert them here: code that stores them must not run methods of the user's types.
        text = message if message is None or type(message) is str else str(message)
        self._progress = (_plain(done), None if total is None else _plain(total), text)
        self._marked()

    def _finish(self) -> None:
        """The body has ended: its last line needs no line break, and nothing more is kept."""
        for stream, text in self._unfinished.items():
            self._line(LogLine(self._at, "INFO", _INFO, stream, _shown(text)))
        self._unfinished.clear()
        self._closed = True

    def _line(self, line: LogLine) -> None:
        if self._closed:
            return
        if self.full:
            self._drop(line.at, 1)
            return
        self._at = line.at
        data = line._replace(text=_kept(line.text)).encoded()
        self._lines += 1
        self._bytes += len(data)
        if not self._keep(data):
            self._drop(line.at, 1)

    def _drop(self, at: int, lines: int) -> None:
        if not self._closed:
            self._at = at
            self.dropped += lines

    def _mark(self) -> bytes | None:
        """Take the progress that was not stored yet, encoded; None if there is none."""
        given, self._progress = self._progress, None
        if given is None:
            return None
        done, total, message = given
        text = None if message is None else _kept(message[:UNFINISHED_UP_TO])[:MESSAGE_UP_TO]
        return Progress(done, total, text).encoded()

    def _keep(self, data: bytes) -> bool:
        """Keep a line; False if there is no room."""
        raise NotImplementedError

    def _marked(self) -> None:
        """There is new progress to store."""
        raise NotImplementedError


class AttemptOutput(BodyOutput):
    """The output of an attempt of this worker, including what a child process sends."""

    def __init__(self, lines: UnstoredLines, attempt: AttemptId) -> None:
        super().__init__()
        self._all = lines
        self._attempt = attempt
        self._waiting: deque[bytes] = deque()
        self._relayed: bytes | None = None
        self.next = 0
        """The number of its next line."""
        self._listed = False

    def numbers(self, count: int) -> int | None:
        """Reserve `count` line numbers for somebody else to store, and return the first. None if the attempt is over."""
        with self._lock:
            if self._closed:
                return None
            first, self.next = self.next, self.next + count
            return first

    def relay(self, kind: str, value: Any) -> None:
        """Add what a child process sends, which has masked, cut and counted it already."""
        with self._lock:
            if self._closed:
                return
            if kind == "dropped":
                self.dropped, self._at = value
            elif kind == "mark":
                self._relayed = value
                self._list()
            elif not self._keep(value):
                self.dropped += 1

    def take(self, limit: int) -> list[Append]:
        """Take up to `limit` lines, numbered, and the progress."""
        with self._lock:
            self._listed = False  # before the progress is read: progress that comes later lists it again
            ops = self._take(limit)
            if self._waiting:
                self._list()
            return ops

    def rest(self) -> list[Append]:
        """Take all that is left, to be stored with the settlement: after it, nothing is accepted."""
        with self._lock:
            self._finish()
            ops = self._take(len(self._waiting))
            if self.dropped:
                kept = f"of an attempt {LINES_UP_TO:,} lines and {BYTES_UP_TO // 1024:,} KiB are"
                text = f"{self.dropped:,} more {'line was' if self.dropped == 1 else 'lines were'} not kept: {kept}"
                note = LogLine(self._at, "WARNING", 30, "stepwell", text)
                ops.append(Append(self._attempt, self.next, LOG, note.encoded()))
                self.next += 1
            return ops

    def _take(self, limit: int) -> list[Append]:
        taken = [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]
        ops = [Append(self._attempt, self.next + place, LOG, data) for place, data in enumerate(taken)]
        self.next += len(taken)
        self._all.left(sum(map(len, taken)))
        mark = self._mark() or self._relayed
        self._relayed = None
        if mark is not None:
            ops.append(Append(self._attempt, MARK, PROGRESS, mark))
        return ops

    def _keep(self, data: bytes) -> bool:
        if not self._all.enter(len(data)):
            return False
        self._waiting.append(data)
        if not self._listed:
            self._list()
        return True

    def _marked(self) -> None:
        if not self._listed and not self._closed:
            with self._lock:
                if not self._listed:
                    self._list()

    def _list(self) -> None:
        self._listed = True
        self._all.listed(self)


class HasOutput(Protocol):
    """An attempt whose body may log and print."""

    attempt: AttemptId
    over: bool
    printed: AttemptOutput | None


class UnstoredLines:
    """What the bodies of one worker have printed and is not stored yet."""

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self.wake = wake
        """Called when an output starts to wait. `mark_due` should follow soon."""
        self.is_due = False
        self._lock = threading.Lock()
        self._with_lines: deque[AttemptOutput] = deque()
        self._bytes = 0

    def of(self, held: HasOutput) -> AttemptOutput | None:
        """The output of an attempt, created when it first writes something. None if the attempt is over."""
        if held.printed is None and not held.over:
            with self._lock:
                if held.printed is None:
                    held.printed = AttemptOutput(self, held.attempt)
        return held.printed

    def mark_due(self) -> None:
        """Put what is waiting into the next commit."""
        self.is_due = bool(self._with_lines)

    def due(self) -> list[Append]:
        """Take the lines to store now."""
        ops: list[Append] = []
        # An output that is listed again meanwhile waits for the next commit.
        for _ in range(len(self._with_lines)):
            if len(ops) >= TAKEN_UP_TO:
                return ops
            ops += self._with_lines.popleft().take(TAKEN_UP_TO - len(ops))
        self.is_due = False
        return ops

    def listed(self, output: AttemptOutput) -> None:
        self._with_lines.append(output)
        self.wake()

    def enter(self, size: int) -> bool:
        with self._lock:
            if self._bytes + size > WAITING_UP_TO:
                return False
            self._bytes += size
            return True

    def left(self, size: int) -> None:
        with self._lock:
            self._bytes -= size


def _shown(text: str) -> str:
    """What a terminal would show: a carriage return starts the line anew, as progress bars do."""
    return text.rstrip("\r").rpartition("\r")[2] if "\r" in text else text


def _kept(text: str) -> str:
    """The text, masked and cut."""
    cut = len(text) == UNFINISHED_UP_TO
    text = clean(mask(text))
    if cut and (margin := longest()):
        text = text[:-margin]  # a secret may have been cut there and not recognised
    if len(text) <= LINE_UP_TO:
        return text
    left_out = f" ... {len(text) - LINE_UP_TO:,} characters left out ... "
    return text[: LINE_UP_TO - _TAIL] + left_out + text[-_TAIL:]


def _finite(number: Any) -> bool:
    try:
        return math.isfinite(number)
    except (TypeError, OverflowError):
        return False


def _plain(number: Any) -> float:
    """The same as an int or float, whatever library the number comes from."""
    if type(number) is int or type(number) is float:
        return number
    try:
        return operator.index(number)
    except TypeError:
        return float(number)
