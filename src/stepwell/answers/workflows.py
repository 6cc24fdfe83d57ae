"""Workflows that are known, versions of documents, what checking them found, and handlers."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from .problem import ProblemPlace


class WorkflowRecord(TypedDict):
    """A workflow that is known: a stored document, a class that workers have code for, or a stored pipeline."""

    name: str
    """Its name."""
    kind: Literal["document", "class", "pipeline"]
    """What it is."""
    version: int | None
    """The active version; null of a class."""
    versions: int | None
    """How many versions there are; null of a class."""
    digest: str
    """The SHA-256 of its canonical form; of a class, the digest of its graph."""
    saved_at: str | None
    """When its newest version was saved; of a class, when a worker registered it."""


class WorkflowDetail(WorkflowRecord):
    """A workflow with its input and, of a document, its content. `version` is the one that is shown."""

    active: bool
    """Whether this is what its name alone starts."""
    description: str | None
    """What it is for."""
    input: dict[str, Any] | None
    """The JSON Schema of its input."""
    target: str | None
    """Of a class: `package.module:Class`."""
    document: dict[str, Any] | None
    """Of a document: its content in canonical form."""


class VersionRecord(TypedDict):
    """A version of a document or of a trigger."""

    name: str
    """Its name."""
    version: int
    """Its number, from 1."""
    digest: str
    """The SHA-256 of its canonical form."""
    size: int
    """Bytes of its canonical form."""
    saved_at: str
    """When it was saved."""
    active: bool
    """Whether it is the one that the name alone means."""


class SavedRecord(TypedDict):
    """A document that was saved, or a version that was made the active one."""

    name: str
    """Its name."""
    version: int
    """The version that has this content."""
    digest: str
    """The SHA-256 of its canonical form."""
    is_new: bool
    """Whether this version was made now; false if it was stored before."""
    active: int
    """The version that the name alone starts."""


class CheckedDocument(TypedDict):
    """What checking a document found."""

    valid: bool
    """Whether nothing is wrong with it."""
    name: str | None
    """Its name; null if it is not valid."""
    digest: str | None
    """The SHA-256 of its canonical form; null if it is not valid, or a pipeline."""
    nodes: int | None
    """How many nodes it has; null if it is not valid, or a pipeline."""
    problems: list[ProblemPlace]
    """Everything that is wrong with it."""


class CheckedFile(CheckedDocument):
    """What checking a file of a document or a pipeline found, as `stepwell check --json` prints it."""

    file: str
    """The file."""
    stages: list[str] | None
    """Of a pipeline: its stages."""
    not_followed: dict[str, dict[str, str]]
    """Of a pipeline, by stage: code whose changes are not noticed, and where it is named."""
    awaited: dict[str, str]
    """Of a pipeline, by trigger or node: the type of state it waits for, which nothing in this root makes."""


class DocumentRecord(TypedDict):
    """A document in a file, as `stepwell show --json` prints it."""

    digest: str
    """The SHA-256 of its canonical form."""
    version: int | None
    """Its version, if it is stored."""
    document: dict[str, Any]
    """Its content in canonical form."""


class HandlerRecord(TypedDict):
    """A handler: what nodes of documents can do."""

    name: str
    """Its name."""
    description: str
    """What it does."""
    version: str
    """Its version, which is a part of what identifies a node of a pipeline."""
    config: dict[str, Any]
    """The JSON Schema of its config."""
    output: dict[str, Any] | None
    """The JSON Schema of what it returns, if that is known."""
    example: dict[str, Any]
    """An example of a config."""
    timeout_seconds: float
    """How long it may take, unless the node says otherwise."""
    max_attempts: int
    """How often it is tried, unless the node says otherwise."""
    side_effects: Literal["pure", "recordable", "opaque"]
    """What a replay may do with it."""
    where: str | None
    """Where its code is."""
