"""Stored documents: saved as immutable versions and found by name. One version of each is active."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast, get_args

from ..base.clock import SECOND
from ..base.codec import decode
from ..base.words import iso, nearest, shown
from ..core.model import NameRow, VersionRow, parted
from ..core.store import Store, reader, versions
from ..define.document import Document
from ..errors import InputError, StoreCorrupt
from ..handlers import Handlers
from ..history.audit_log import noted
from .recent import Recent

if TYPE_CHECKING:
    from ..answers.audit_log import TargetKind
    from ..answers.workflows import SavedRecord, VersionRecord, WorkflowDetail, WorkflowRecord

DocumentKind: TypeAlias = Literal["document", "pipeline"]
KINDS: tuple[DocumentKind, ...] = get_args(DocumentKind)


class SavedDocument(NamedTuple):
    """A saved version of a document: `summarise@3`."""

    name: str
    version: int
    digest: str
    is_new: bool
    """False: this version had this content already."""
    active: int
    """The version that is started by the name alone."""

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    def to_dict(self) -> SavedRecord:
        return cast("SavedRecord", self._asdict())


class StoredWorkflow(NamedTuple):
    """A workflow that is stored as a document."""

    name: str
    version: int
    """The active one."""
    versions: int
    digest: str
    saved_at: float
    """When the newest version was saved, in seconds since 1970."""


def check_document(document: object) -> None:
    if not isinstance(document, Document):
        raise InputError(f"expected a Document to save, as of Document.load(file), got {shown(document)}")


class Documents:
    """The documents of one store: workflows, or another kind of document."""

    def __init__(self, store: Store, handlers: Handlers, kind: DocumentKind = "document") -> None:
        self.kind: DocumentKind = kind
        self._store = store
        self.handlers = handlers
        self._read: Recent[str, Document] = Recent(64)
        """By digest: a version never changes."""

    def save(self, document: Document) -> SavedDocument:
        """Store a document. The same content is the same version; anything else is a new one."""
        check_document(document)
        declare = self._declaring(document)
        entries = noted("save", self._target, document.name)
        saved = versions.save_version(self._store, self.kind, document.name, document.digest, document.content, entries)
        if saved.active == saved.number:
            declare()
        return SavedDocument(document.name, saved.number, document.digest, not saved.existed, saved.active)

    def activate(self, text: str) -> SavedDocument:
        """Make `summarise@2` the version that `summarise` starts; `summarise` alone makes the newest active again."""
        name, number = parted(text)
        entries = noted("activate", self._target, name, version=number)
        active = versions.activate_version(self._store, self.kind, name, number, entries)
        if active is None:
            raise self._unknown(name, number)
        row = self.row(f"{name}@{active}")
        if self.kind == "document":
            self._declaring(self.document(row))()
        return SavedDocument(name, active, row.digest, False, active)

    @property
    def _target(self) -> TargetKind:
        return "workflow" if self.kind == "document" else "pipeline"

    def _declaring(self, document: Document) -> Callable[[], object]:
        """Check the triggers that a document declares; the result stores them, and removes those it declared before."""
        source, declared = f"document {document.name}", getattr(document, "triggers", ())
        if not declared and next(reader.all_records(self._store, "trigger", page=1), None) is None:
            return lambda: None
        from ..triggers.book import trigger_book

        book = trigger_book(self._store)
        book.check_owner(source, declared)
        return lambda: book.declare(source, declared)

    def all(self) -> Iterator[StoredWorkflow]:
        for row in versions.all_names(self._store, self.kind):
            yield StoredWorkflow(row.name, row.active, row.newest, row.digest, row.stored_at / SECOND)

    def versions(self, name: str) -> list[VersionRow]:
        rows = versions.all_versions(self._store, self.kind, name)
        if not rows:
            raise self._unknown(name, None)
        return rows

    def row(self, text: str) -> VersionRow:
        """The version that `summarise`, the active one, or `summarise@3` means; InputError says what there is."""
        name, number = parted(text)
        row = versions.get_version(self._store, self.kind, name, number)
        if row is None:
            raise self._unknown(name, number)
        return row

    def content(self, row: VersionRow) -> bytes:
        return versions.get_content(self._store, self.kind, row.digest)

    def find(self, text: str) -> Document:
        """The document that a name means, checked against the handlers of today."""
        return self.checked(self.row(text))

    def checked(self, row: VersionRow) -> Document:
        """The document of a version, checked against the handlers of today."""
        known = self._read.get(row.digest)
        if known is None:
            known = self._read[row.digest] = self.document(row)
        return known

    def document(self, row: VersionRow) -> Document:
        document = Document.parse(self.content(row), self.handlers, form="json", source=f"{row.name}@{row.number}")
        if document.digest != row.digest:
            raise StoreCorrupt(f"{row.name}@{row.number} is not what was stored: its digest is {document.digest}")
        return document

    def detail(self, row: VersionRow) -> WorkflowDetail:
        """A version as JSON."""
        content = decode(self.content(row))
        return {
            "name": row.name,
            "kind": self.kind,
            "version": row.number,
            "versions": self.versions(row.name)[-1].number,
            "digest": row.digest,
            "saved_at": iso(row.stored_at),
            "active": row.active,
            "description": content.get("description"),
            "input": content.get("input"),
            "target": None,
            "document": content,
        }

    def version_of(self, name: str, digest: str) -> int | None:
        """The number of the version with this content; None if it was never saved."""
        row = versions.get_version(self._store, self.kind, name, digest=digest)
        return None if row is None else row.number

    def _unknown(self, name: str, number: int | None) -> InputError:
        rows = versions.all_versions(self._store, self.kind, name)
        if rows and number is not None:
            return InputError(f"there is no version {number} of {name!r}: there are 1 to {rows[-1].number}")
        names = [row.name for row in versions.all_names(self._store, self.kind)]
        close = nearest(name, names)
        if close is not None:
            rest = f"; did you mean {close!r}?"
        else:
            rest = f"; there are {', '.join(names[:20])}" if names else "; `stepwell save FILE` stores one"
            other = "a class or a function is" if self.kind == "document" else "one in a module is"
            rest += f"; {other} named as package.module:Name"
        return InputError(f"no {self.kind} {name!r} is stored here{rest}")


def workflow_record(row: NameRow, kind: DocumentKind) -> WorkflowRecord:
    return {
        "name": row.name,
        "kind": kind,
        "version": row.active,
        "versions": row.newest,
        "digest": row.digest,
        "saved_at": iso(row.stored_at),
    }


def version_record(row: VersionRow) -> VersionRecord:
    return {
        "name": row.name,
        "version": row.number,
        "digest": row.digest,
        "size": row.size,
        "saved_at": iso(row.stored_at),
        "active": row.active,
    }
