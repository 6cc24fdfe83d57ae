"""`StateStore`: what a pipeline needs of the place its states are in. One conformance suite says what each must do.

An *address* names a state: a file `final/a.md`, a directory `audio/a/`, or the files that one entity made,
`chapters/moby/{number}.txt`. A path names one file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..patterns.pattern import Pattern
from .cache import Cache
from .listing import Folder, Stamp
from .records import Failure, Record
from .snapshot import Snapshot


class Draft(NamedTuple):
    """Where a body writes an output that nobody sees yet."""

    address: str
    place: str
    """A file, or a directory for a state of several files."""
    token: str


class Publication(NamedTuple):
    """An output that was written, checked and settled, and is now to be seen."""

    draft: Draft
    record: Record
    expected: str | None
    """The content hash that was recorded before; None: nothing was."""
    replace: bool = False
    """Somebody asked for it: also what nobody recorded is replaced (and kept aside)."""


class Published(NamedTuple):
    address: str
    done: bool
    reason: str = ""
    """Why it was not: `unrecorded` (a file that nobody recorded stands there), `superseded`, or `lost` (the draft is gone)."""


class StateStore(Protocol):
    """What a pipeline needs of the place its states are in."""

    url: str

    @property
    def root_id(self) -> str:
        """What tells this root from every other."""
        ...

    # Looking
    def walk(self, wanted: Callable[[Sequence[str]], bool]) -> list[Folder]: ...
    def snapshot(self, wanted: Callable[[Sequence[str]], bool], folders: Sequence[Folder] | None = None) -> Snapshot:
        """Everything there is in the directories that are `wanted`."""
        ...

    def cached(self) -> Cache: ...
    def unchanged(self, folders: Sequence[Folder]) -> bool:
        """Whether everything is as it was when the cache was saved."""
        ...

    def save_cache(self, snapshot: Snapshot, verdict: dict[str, Any]) -> None: ...
    def exists(self, path: str) -> bool: ...
    def read(self, path: str) -> bytes:
        """What is in a file; FileNotFoundError if there is none."""
        ...

    def read_with_stamp(self, path: str) -> tuple[bytes, Stamp]: ...
    def still_is(self, path: str, stamp: Stamp, digest: str) -> bool:
        """Whether what is at a path is what was read with this stamp."""
        ...

    def files_below(self, path: str) -> list[str] | None: ...
    def stamp(self, path: str) -> Stamp | None: ...
    def directory_hash(self, path: str, excluded: Sequence[Pattern]) -> str | None: ...
    def local(self, path: str) -> Path:
        """A file that holds what is at the path, for a body to read."""
        ...

    def records(self, addresses: Iterable[str]) -> dict[str, Record]: ...
    def read_records(self, folder: str) -> dict[str, Record]: ...
    def failures(self) -> dict[str, Failure]: ...

    # Changing: everything is durable when it returns, and repeating it changes nothing
    def put(self, path: str, content: bytes) -> None:
        """A source, from outside."""
        ...

    def draft(self, address: str, token: str) -> Draft: ...
    def draft_name(self, draft: Draft) -> str: ...
    def drafted(self, address: str, name: str, token: str) -> Draft: ...
    def discard(self, draft: Draft) -> None: ...
    def publish(self, publications: Sequence[Publication]) -> list[Published]:
        """Make drafts seen, each as a whole."""
        ...

    def finish(self, folders: Iterable[Folder]) -> list[str]:
        """Finish what a crash interrupted; the addresses of it."""
        ...

    def change_records(self, changes: Mapping[str, Record | None]) -> None: ...
    def remove(self, addresses: Iterable[str]) -> list[str]:
        """Delete states and their records."""
        ...

    def change_failures(self, changes: Mapping[str, Failure | None]) -> None: ...
    def trigger_marks(self) -> dict[str, str]: ...
    def mark_triggers(self, marks: Mapping[str, str]) -> None: ...
    def keep_code(self, code_hash: str, parts: Mapping[str, str]) -> None:
        """Remember what a stage was made of, so that `why` can name what changed."""
        ...

    def known_code(self, code_hash: str) -> Mapping[str, Any] | None: ...
    def lease(self, name: str, patience: float) -> AbstractContextManager[Callable[[], bool]]:
        """The right to scan, for one process at a time; what is given says whether it still holds."""
        ...

    def lease_number(self, name: str) -> int:
        """How often the lease has been taken and given back: odd while somebody has it, or had it and died."""
        ...

    def close(self) -> None: ...
