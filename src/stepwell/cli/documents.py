"""The documents that somebody typed: a file, or the name of a stored one; and inputs for them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..model import parted
from ..schemas import problems_of
from ..store import Store, reader
from .connect import Connection

if TYPE_CHECKING:
    from ..define.document import Document
    from ..handlers import Handlers
    from .inputs import Pairs

SUFFIXES = (".json", ".yaml", ".yml")


def is_file(text: str) -> bool:
    """Whether somebody means a file: it is called like a document, or there is such a file and it is no address."""
    return text.lower().endswith(SUFFIXES) or ("/" in text and ":" not in text and Path(text).is_file())


def names_document(text: str) -> bool:
    """Whether somebody means a document: a file, or a stored one. `module:Class` is neither."""
    return is_file(text) or ":" not in text


def load_file(connection: Connection, file: str, handlers: Handlers | None = None) -> Document:
    from ..define.document import Document

    return Document.load(file, connection.handlers() if handlers is None else handlers)


def stored_document(connection: Connection, store: Store, text: str) -> Document | None:
    """The stored document that a text names, unless a run has this id; None if there is none."""
    if reader.get_run(store, text) is not None:
        return None
    name, number = parted(text)
    if reader.get_version(store, "document", name, number) is None:
        return None
    return connection.engine(store).documents.find(text)


def document_input(document: Document, pairs: Pairs, file: str | None) -> dict[str, Any]:
    """The input that was typed for a run of a document."""
    return typed_input(document.input, pairs, file)


def typed_input(schema: Mapping[str, Any] | None, pairs: Pairs, file: str | None) -> dict[str, Any]:
    """What was typed for an input; each value means what the schema wants, if it can."""
    problems: list[str] = []
    values = json_object("--input-file", file, problems) if file is not None else {}
    properties: Mapping[str, Any] = (schema or {}).get("properties", {})
    given: set[str] = set()
    for pair in pairs or ():
        name, separator, text = pair.partition("=")
        if not separator or not name:
            problems.append(f"--input {pair!r}: the form name=value is needed")
        elif name in given:
            problems.append(f"--input {name}: it is given twice")
        else:
            given.add(name)
            values[name] = _meant(text, properties.get(name), schema)
    if problems:
        raise InputError("\n".join(problems))
    return values


def json_object(option: str, file: str, problems: list[str]) -> dict[str, Any]:
    """A JSON object from a file, or from stdin for `-`."""
    try:
        found = json.loads(sys.stdin.read() if file == "-" else Path(file).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{option} {file}: it cannot be read: {error}")
        return {}
    except ValueError as error:
        problems.append(f"{option} {file}: it is not JSON: {error}")
        return {}
    if not isinstance(found, dict):
        problems.append(f"{option} {file}: a JSON object is needed")
        return {}
    return found


def _meant(text: str, schema: Any, root: Any) -> Any:
    """The value that a text means where a schema wants one; the text itself when it means none."""
    if schema is None:
        return text
    from .inputs import meanings

    whole = {**root, "type": "object", "properties": {"it": schema}, "required": []}
    return next((value for value in meanings(text) if not problems_of(whole, {"it": value})), text)
