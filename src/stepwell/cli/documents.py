"""Documents named on the command line (files, or stored ones by name), and inputs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.forms.problems import shown
from ..base.schemas import problems_of
from ..core.model import parted
from ..core.store import Store, reader, versions
from ..errors import InputError
from .connect import Connection

if TYPE_CHECKING:
    from ..define.document import Document
    from ..handlers import Handlers

Pairs = Sequence[str] | None
"""The values of `--input`, as in `order_id=7`; None when it was not given."""
_BOOLEANS = {"yes": True, "on": True, "1": True, "true": True, "no": False, "off": False, "0": False, "false": False}
SUFFIXES = (".json", ".yaml", ".yml")


def is_file(text: str) -> bool:
    """Whether a text names a file: it has the suffix of a document, or is the path of a file and no address."""
    return text.lower().endswith(SUFFIXES) or ("/" in text and ":" not in text and Path(text).is_file())


def names_document(text: str) -> bool:
    """Whether a text names a document, a file or a stored one, and not `module:Class`."""
    return is_file(text) or ":" not in text


def load_file(connection: Connection, file: str, handlers: Handlers | None = None) -> Document:
    from ..define.document import Document

    return Document.load(file, connection.handlers() if handlers is None else handlers)


def stored_document(connection: Connection, store: Store, text: str) -> Document | None:
    """The stored document that a text names, unless a run has this id; None if there is none."""
    if reader.get_run(store, text) is not None:
        return None
    name, number = parted(text)
    if versions.get_version(store, "document", name, number) is None:
        return None
    return connection.engine(store).parts.documents.find(text)


def typed_input(schema: Mapping[str, Any] | None, pairs: Pairs, file: str | None) -> dict[str, Any]:
    """The input that was typed, each value read as the schema asks for."""
    problems: list[str] = []
    properties: Mapping[str, Any] = (schema or {}).get("properties", {})
    values = json_object("--input-file", file, problems)
    values |= named_values(pairs, lambda name, text: _meant(text, properties.get(name), schema), problems)
    if problems:
        raise InputError("\n".join(problems))
    return values


def named_values(pairs: Pairs, meant: Callable[[str, str], Any], problems: list[str]) -> dict[str, Any]:
    """The values of `--input NAME=VALUE`; `meant` gives the value that a text means for a name."""
    values: dict[str, Any] = {}
    for pair in pairs or ():
        name, separator, text = pair.partition("=")
        if not separator or not name:
            problems.append(f"--input {pair!r}: expected NAME=VALUE")
        elif name in values:
            problems.append(f"--input {name}: it is given twice")
        else:
            try:
                values[name] = meant(name, text)
            except json.JSONDecodeError as error:
                problems.append(f"--input {name}: it is not JSON: {error.msg} at character {error.pos + 1}")
                values[name] = text
    return values


def read_bytes(file: str) -> bytes:
    """What a file holds, or what comes from stdin for `-`."""
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{file}: it cannot be read: {error.strerror or error}") from None


def json_object(option: str, file: str | None, problems: list[str]) -> dict[str, Any]:
    """A JSON object from a file, or from stdin for `-`; an empty one if no file was named."""
    if file is None:
        return {}
    try:
        data = json.loads(sys.stdin.read() if file == "-" else Path(file).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{option} {file}: it cannot be read: {error}")
    except ValueError as error:
        problems.append(f"{option} {file}: it is not JSON: {error}")
    else:
        if isinstance(data, dict):
            return data
        problems.append(f"{option} {file}: expected a JSON object, got {shown(data)}")
    return {}


def _meant(text: str, schema: Any, root: Any) -> Any:
    """The value that a text means under a schema; the text itself if none fits."""
    if schema is None:
        return text
    whole = {**root, "type": "object", "properties": {"it": schema}, "required": []}
    return likeliest(text, lambda value: not problems_of(whole, {"it": value}))


def likeliest(text: str, fits: Callable[[Any], bool]) -> Any:
    """The value that a text means: the first that fits.

    If none does, an object or a list stays what it is, so that the error names the field in it, and anything else a text.
    A JSONDecodeError says what is wrong with one that was begun and is no JSON.

    >>> likeliest("7", lambda value: value == "7"), likeliest('{"a": 7}', lambda value: False)
    ('7', {'a': 7})
    """
    for value in meanings(text):
        if fits(value):
            return value
    return json.loads(text) if text.lstrip().startswith(("{", "[")) else text


def meanings(text: str) -> Iterator[Any]:
    """All values that a text could mean, the likeliest first. Plain text comes before JSON strings and null."""
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = text
    if not isinstance(parsed, str) and parsed is not None:
        yield parsed
    if text.lower() in _BOOLEANS:
        yield _BOOLEANS[text.lower()]
    yield text
    yield parsed
