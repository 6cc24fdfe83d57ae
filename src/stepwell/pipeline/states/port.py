"""`StateStore`: what a pipeline needs of the place its states are in. One conformance suite says what each must do.

It has a narrow door for each thing: the files there are, the records of how they came to be, drafts that nobody sees yet,
notes, and what the last scan knew. What has to happen as a whole (publish, finish, remove) is asked of the store itself.

An *address* names a state: a file `final/a.md`, a directory `audio/a/`, or the files that one entity made,
`chapters/moby/{number}.txt`. A path names one file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from ..patterns.pattern import Pattern
from .cache import Cache
from .listing import Folder
from .records import Record
from .single import Read, Stamp
from .snapshot import Snapshot

Wanted: TypeAlias = Callable[[Sequence[str]], bool]
"""Whether a directory, given by its components, may have something in it or below it."""
NoteKind: TypeAlias = Literal["failures", "triggers", "code", "types"]


class Draft(NamedTuple):
    """Where a body writes an output that nobody sees yet."""

    address: str
    place: str
    """A file, or a directory for a state of several files."""


class Publication(NamedTuple):
    """An output that was written, checked and settled, and is now to be seen."""

    draft: Draft
    record: Record
    former: Record | None
    """What was recorded before; None: nothing was."""
    replace: bool = False
    """Somebody asked for it: also what nobody recorded is replaced (and kept aside)."""


class Published(NamedTuple):
    address: str
    done: bool
    reason: str = ""
    """Why it was not: `unrecorded` (something that nobody recorded is there), or `lost` (the draft is gone)."""
    stamp: Stamp | None = None
    """Of a file that was just renamed."""


class Files(Protocol):
    """What is there, whoever made it."""

    def walk(self, wanted: Wanted) -> list[Folder]: ...
    def exists(self, path: str) -> bool: ...
    def read(self, path: str) -> bytes:
        """What is in a file; FileNotFoundError if there is none."""
        ...

    def read_stamped(self, path: str) -> Read:
        """The same, with the stamp and the content hash."""
        ...

    def still_is(self, path: str, stamp: Stamp, digest: str) -> bool:
        """Whether a file is what was read, with this stamp and of this hash."""
        ...

    def stamp(self, path: str) -> Stamp | None: ...
    def stamps(self, paths: Sequence[str]) -> list[Stamp | None]:
        """The same for many."""
        ...

    def below(self, path: str) -> list[str] | None:
        """The files of a directory and below it; None if it is none."""
        ...

    def directory_hash(self, path: str, excluded: Sequence[Pattern]) -> str | None:
        """The content hash of a directory, without the files that are excluded; None if it is not there."""
        ...

    def local(self, path: str) -> Path:
        """A file that holds what is at the path, for a body to read."""
        ...

    def put(self, path: str, content: bytes) -> None:
        """Write a source, from outside."""
        ...

    def change_mark(self) -> object | None:
        """Another value after each change; None where the system tells of changed files."""
        ...


class Records(Protocol):
    """How states came to be, by address."""

    def find(self, addresses: Iterable[str]) -> dict[str, Record]: ...
    def read(self, folder: str) -> dict[str, Record]:
        """The records of the states that one directory has."""
        ...

    def change(self, changes: Mapping[str, Record | None]) -> None: ...


class Drafts(Protocol):
    """Outputs that nobody sees yet."""

    def open(self, address: str, token: str) -> Draft:
        """`token` tells it from all other drafts."""
        ...

    def write(self, draft: Draft, content: bytes, member: str = "") -> None:
        """Write the draft of a file, or one file of several."""
        ...

    def read(self, draft: Draft, member: str = "") -> bytes: ...
    def members(self, draft: Draft) -> list[str]:
        """The files of a draft of several. UnsafePath if something there is no file."""
        ...

    def keep(self, draft: Draft) -> str:
        """It is written: the name by which whoever publishes it, in another process too, finds it."""
        ...

    def named(self, address: str, name: str) -> Draft: ...
    def discard(self, draft: Draft) -> None: ...


class Notes(Protocol):
    """What else is kept beside states: JSON by key. See `notes.py` for what is written there."""

    def read(self, kind: NoteKind) -> dict[str, Any]: ...
    def change(self, kind: NoteKind, changes: Mapping[str, Any]) -> None:
        """None removes a note."""
        ...


class ScanCache(Protocol):
    """What the last scan knew; may be lost at any time."""

    def read(self) -> Cache: ...
    def changed(self, folders: Sequence[Folder]) -> list[str] | None:
        """The files that are not as they were when the cache was saved; None if it cannot be told, or if files, records or
        failures were added or removed.
        """
        ...

    def save(self, snapshot: Snapshot, verdict: dict[str, Any]) -> None:
        """Of a snapshot of some paths only, the rest stays as it is."""
        ...


class StateStore(Protocol):
    """What a pipeline needs of the place its states are in. Every change is durable when it returns, and repeating it changes
    nothing.
    """

    url: str

    @property
    def files(self) -> Files: ...
    @property
    def records(self) -> Records: ...
    @property
    def drafts(self) -> Drafts: ...
    @property
    def notes(self) -> Notes: ...
    @property
    def cache(self) -> ScanCache: ...
    @property
    def root_id(self) -> str:
        """What tells this root from every other."""
        ...

    def snapshot(
        self, wanted: Wanted, folders: Sequence[Folder] | None = None, only: Collection[str] | None = None
    ) -> Snapshot:
        """Everything there is in the directories that are `wanted`, or of it `only` some paths."""
        ...

    def sync(self, drafts: Iterable[Draft]) -> None:
        """Have drafts survive a crash of the machine: before they are published, and in any thread."""
        ...

    def publish(
        self, publications: Sequence[Publication], check: Callable[[], object] = lambda: None
    ) -> list[Published]:
        """Make drafts seen that are synced, each as a whole. Nothing, if `check` raises while nobody else can publish."""
        ...

    def tidy(self) -> None:
        """After the last of many publications: bring what was recorded into the form that it is kept in."""
        ...

    def finish(self, folders: Iterable[Folder]) -> list[str]:
        """Finish what a crash interrupted, and remove what nobody needs any more; the addresses of what was finished."""
        ...

    def remove(self, addresses: Iterable[str]) -> list[str]:
        """Delete states and their records."""
        ...

    def lease(self, name: str, patience: float) -> AbstractContextManager[Callable[[], bool]]:
        """The right to scan, for one process at a time; what is given says whether it still holds."""
        ...

    def lease_number(self, name: str) -> int:
        """How often the lease has been taken and given back: odd while somebody has it, or had it and died."""
        ...

    def close(self) -> None: ...
