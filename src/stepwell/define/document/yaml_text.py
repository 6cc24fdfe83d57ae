"""YAML 1.2: `no` is a text, `012` is twelve, and tags are refused.

PyYAML's parser gives events, which are interpreted here, so none of its constructors can be reached. Anchors and aliases are
refused: a few lines of them can stand for gigabytes, and readers should see what is there.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml.reader import Reader

from ...base.codec import MAX_DEPTH
from ...base.forms.problems import Path
from .marks import Mark
from .problems import Unreadable

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+\Z|0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_JSON = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
MAX_EVENTS = 1_000_000
"""Each takes ten times as long as in JSON, and has a place in the text that is kept. JSON may hold more."""
_MAY_BE_NUMBER = frozenset("0123456789+-.")


def read_yaml(text: str, repeated: list[Path]) -> tuple[Any, Mark]:
    """Read a YAML text, with the places of its values; repeated keys are added to `repeated`."""
    try:
        return _YamlReader(repeated).read(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = ", ".join(each for each in (error.context, error.problem) if each)
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        raise Unreadable(f"it is not YAML: {words or 'it is not understood'}", line, column) from None
    except yaml.YAMLError as error:  # a character that YAML does not allow
        words = " ".join(str(error).split())[:200]
        raise Unreadable(f"it is not YAML: {words}", *_first_forbidden(text)) from None


def _first_forbidden(text: str) -> tuple[int, int]:
    forbidden = Reader.NON_PRINTABLE.search(text)
    offset = 0 if forbidden is None else forbidden.start()
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


class _OpenCollection:
    """A list or an object that is being read."""

    __slots__ = ("key", "mark", "path", "value")

    def __init__(self, value: Any, mark: Mark, path: Path) -> None:
        self.value = value
        self.mark = mark
        self.path = path
        self.key: Any = None


class _YamlReader:
    def __init__(self, repeated: list[Path]) -> None:
        self._repeated = repeated
        self._stack: list[_OpenCollection] = []
        self._root: Any = None
        self._mark = Mark(1, 1)
        self._documents = 0

    def read(self, text: str) -> tuple[Any, Mark]:
        for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
            kind = type(event)
            if count > MAX_EVENTS:
                raise _unreadable(event, f"it has more than {MAX_EVENTS:,} values and ends of lists and objects")
            if kind is yaml.ScalarEvent:
                _refuse_extras(event)
                self._scalar(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                _refuse_extras(event)
                self._begin({} if kind is yaml.MappingStartEvent else [], event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._stack.pop()
            elif kind is yaml.AliasEvent:
                raise _unreadable(event, f"aliases are not read: write what *{event.anchor} stands for")
            elif kind is yaml.DocumentStartEvent:
                self._documents += 1
                if self._documents > 1:
                    raise _unreadable(event, "expected one document, and a second begins here")
        return self._root, self._mark

    def _begin(self, value: Any, event: Any) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise _unreadable(event, f"it is nested deeper than {MAX_DEPTH} levels")
        if self._awaits_key():
            raise _unreadable(event, "a key must be a text")
        mark, path = self._put(value, event)
        self._stack.append(_OpenCollection(value, mark, path))

    def _scalar(self, event: Any) -> None:
        if not self._awaits_key():
            self._put(_meaning(event), event)
            return
        parent = self._stack[-1]
        key = _meaning(event)
        if not isinstance(key, str):
            raise _unreadable(event, f'a key must be a text: write "{event.value}"')
        if key in parent.value:
            self._repeated.append((*parent.path, key))
        parent.key = key

    def _awaits_key(self) -> bool:
        return bool(self._stack) and type(self._stack[-1].value) is dict and self._stack[-1].key is None

    def _put(self, value: Any, event: Any) -> tuple[Mark, Path]:
        line, column = _place(event)
        if not self._stack:
            self._root, self._mark = value, Mark(line, column)
            return self._mark, ()
        parent = self._stack[-1]
        mark = Mark(line, column)
        if type(parent.value) is dict:
            step, parent.key = parent.key, None
            parent.value[step] = value
        else:
            step = len(parent.value)
            parent.value.append(value)
        parent.mark.children[step] = mark
        return mark, (*parent.path, step)


def _meaning(event: Any) -> Any:
    text: str = event.value
    if not event.implicit[0]:  # it has quotes, or is a block
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _MAY_BE_NUMBER:
        return text
    if _INTEGER.match(text):
        if len(text) > 4_000:
            raise _unreadable(event, "a number of more than 4,000 digits")
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.match(text):
        number = float(text)
        if number - number != 0:
            raise _unreadable(event, f"{text[:40]} is larger than any JSON number")
        return number
    if _NOT_JSON.match(text):
        raise _unreadable(event, f"{text} is no JSON number; as a text it needs quotes")
    return text


def _refuse_extras(event: Any) -> None:
    if event.anchor is not None:
        raise _unreadable(event, f"anchors are not read: write without &{event.anchor}")
    if event.tag is not None:
        raise _unreadable(event, f"tags are not read: write without {event.tag}")


def _place(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _unreadable(event: Any, message: str) -> Unreadable:
    return Unreadable(message, *_place(event))
