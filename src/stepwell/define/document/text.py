"""Reads a text as JSON or YAML, within limits, and drops nothing silently."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any, Literal, NamedTuple

from ...base.codec import MAX_DEPTH
from ...base.forms.problems import Marks, Path
from ...core.graph.parse import Objects, too_deep, too_many
from .marks import JsonMarks
from .problems import Unreadable

MAX_BYTES = 32 * 1024 * 1024
"""Of a document: some hundred thousand nodes."""
MAX_VALUES, MAX_CONTAINERS = 3_000_000, 1_000_000
"""Values of a JSON text, and those of them that are lists or objects: a few bytes of text are a hundred of memory."""
Form = Literal["json", "yaml"]
_FORMS: dict[str, Form] = {".json": "json", ".yaml": "yaml", ".yml": "yaml"}


class ParsedText(NamedTuple):
    """The content of a text."""

    data: Any
    repeated: list[Path]
    """The paths of keys that an object has twice."""
    marks: Callable[[], Marks]
    """The lines and columns of everything, computed when needed."""


def read_file(path: FilePath) -> bytes:
    """The bytes of a file; Unreadable if it is too large, which is checked before it is read."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise _too_large(size)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(f"it cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:  # a pipe, or it has grown
        raise _too_large(len(data))
    return data


def read_text(data: str | bytes, form: Form | None = None) -> ParsedText:
    """Read a text; without a form, it is JSON if it begins with a brace or a bracket, else YAML."""
    if len(data) > MAX_BYTES:
        raise _too_large(len(data))
    text = data if isinstance(data, str) else _decoded(data)
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise Unreadable("it is empty")
    if form is None:
        form = "json" if text.lstrip()[0] in "{[" else "yaml"
    if form == "json":
        parsed = _json(text)
    else:
        from .yaml_text import read_yaml

        repeated: list[Path] = []
        data_and_marks = read_yaml(text, repeated)
        parsed = ParsedText(data_and_marks[0], repeated, lambda: data_and_marks[1])
    if not text.isascii() or "\\u" in text:
        _refuse_half_characters(parsed)
    return parsed


def read_document(path: FilePath) -> ParsedText:
    """What the JSON or YAML in a file says; a DocumentError if it cannot be read."""
    try:
        return read_text(read_file(path), _FORMS.get(path.suffix.lower()))
    except Unreadable as error:
        raise error.as_error(str(path)) from None


def _too_large(size: int) -> Unreadable:
    return Unreadable(f"it has {size:,} bytes; at most {MAX_BYTES:,} are allowed")


def _decoded(data: bytes) -> str:
    try:
        return data.decode(json.detect_encoding(data) if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - before.rfind(b"\n")
        raise Unreadable(f"it is not UTF-8: byte 0x{data[error.start]:02x}", line, column) from None


_IN_JSON = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?|(//[^\n]*+|/\*.*?(?:\*/|\Z))', re.DOTALL)
"""A string, which may contain what looks like a comment, or a comment. Without its end it goes on as far as it can, so that
each character is looked at once."""


def _json(text: str) -> ParsedText:
    """Read JSON. That of a pipeline may have comments: those of our first users do."""
    try:
        return _plain_json(text)
    except Unreadable:
        bare = _IN_JSON.sub(_without_comment, text) if "//" in text or "/*" in text else text
        if bare == text:
            raise
        parsed = _plain_json(bare)
        if not isinstance(parsed.data, dict) or parsed.data.get("mode") != "pipeline":
            raise
        return parsed


def _without_comment(match: re.Match[str]) -> str:
    """Blanks for a comment, so that everything else keeps its line and column. One without its end stays, and is refused."""
    has_end = match[1] and (match[1][1] == "/" or (len(match[1]) >= 4 and match[1].endswith("*/")))
    return re.sub(r"[^\n]", " ", match[0]) if has_end else match[0]


def _plain_json(text: str) -> ParsedText:
    if too_many(text, MAX_VALUES, MAX_CONTAINERS):
        most = f"at most {MAX_VALUES:,} are allowed, {MAX_CONTAINERS:,} of them lists or objects"
        raise Unreadable(f"it holds too many values: {most}")
    if too_deep(text, MAX_DEPTH):
        raise Unreadable(f"it is nested deeper than {MAX_DEPTH} levels")
    objects = Objects()
    try:
        data = json.loads(text, object_pairs_hook=objects, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise Unreadable(f"it is not JSON: {error.msg}", error.lineno, error.colno) from None
    except _NotANumber as error:
        offset = text.find(error.word)
        line = text.count("\n", 0, offset) + 1
        raise Unreadable(f"{error.word[:40]} is no JSON number", line, offset - text.rfind("\n", 0, offset)) from None
    except ValueError as error:  # a number of 5,000 digits
        raise Unreadable(f"it is not JSON: {error}") from None
    return ParsedText(data, list(objects.paths_in(data)), lambda: JsonMarks(text))


class _NotANumber(Exception):
    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


def _refuse_constant(word: str) -> Any:
    raise _NotANumber(word)


def _finite(word: str) -> float:
    number = float(word)
    if number - number != 0:
        raise _NotANumber(word)
    return number


def _refuse_half_characters(read: ParsedText) -> None:
    """Refuse text that UTF-8 cannot encode."""
    waiting: list[tuple[Path, Any]] = [((), read.data)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*path, key), key) for key in value]
            waiting += [((*path, key), each) for key, each in value.items()]
        elif isinstance(value, list):
            waiting += [((*path, place), each) for place, each in enumerate(value)]
        elif isinstance(value, str) and not value.isascii():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                raise Unreadable("a text holds half of a surrogate pair", *read.marks().at(path)) from None
