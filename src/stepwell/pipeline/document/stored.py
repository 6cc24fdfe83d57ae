"""Saved pipelines: immutable versions in the engine's store, found by name; one version of each is active."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

from ...base.codec import encode_checked
from ...base.settings import read_settings
from ...core.store import Store, versions
from ...define.document.text import read_document, read_text
from ...engine.documents import Documents, SavedDocument
from ...handlers import Handlers
from ...history.audit_log import noted
from ...stores import open_store
from ..definition import PipelineDefinition
from .load import Made, make_pipeline
from .names import STORED


def save_pipeline(store: Store, file: str) -> SavedDocument:
    """Store the pipeline in a file that was checked before. The same content is the same version."""
    path = Path(file)
    data = {"name": path.stem, **read_document(path).data}
    name, content = data["name"], encode_checked(data)
    digest = sha256(content).hexdigest()
    saved = versions.save_version(store, "pipeline", name, digest, content, noted("save", "pipeline", name))
    return SavedDocument(name, saved.number, digest, not saved.existed, saved.active)


def read_stored(
    make: type[Made],
    store: Store,
    text: str,
    *,
    handlers: Handlers | None = None,
    jobs: tuple[str, ...] = (),
    beside: Iterable[PipelineDefinition] = (),
) -> Made:
    """Read the saved pipeline `auto-blog`, or a version of it, `auto-blog@3`, as an object of the class `make`."""
    documents = Documents(store, handlers or Handlers(), "pipeline")
    row = documents.row(text)
    name = f"{row.name}@{row.number}"
    read = read_text(documents.content(row), "json")
    return make_pipeline(make, read, name, name, STORED + name, handlers=handlers, jobs=jobs, beside=beside)


def read_home(make: type[Made], home: str) -> Made:
    """Read a saved pipeline of which this process knows only the home, from the store of its settings."""
    settings = read_settings({}, os.environ, Path.cwd())
    with closing(open_store(settings.store)) as store:
        handlers = Handlers.of_settings(settings)
        return read_stored(make, store, home.removeprefix(STORED), handlers=handlers, jobs=settings.jobs)
