"""What annotations allow, and whether a value is that. Values are checked here, never changed.

>>> shape_of(list[int]).problems([1, "2"], "ids")
["ids[1]: expected int, got '2' (str)"]

Plain JSON (numbers, texts, lists and dicts of these) is held against closures; everything else has a codec, which converts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from ...errors import NotJson
from ..codec import encode
from ..forms.problems import Problem
from ..words import briefly
from .codecs import Codec, codec_of
from .fields import unwrapped
from .foreign import when_registered
from .kinds import DICTS, examine, shown
from .misfit import Unsupported


class Shape(NamedTuple):
    """What an annotation allows. `problems(value, path)` lists what is wrong with a value found at `path`."""

    text: str
    problems: Callable[[Any, str], Sequence[str]]
    fits: Callable[[Any], bool]
    """A quick check for plain JSON, which does not look inside `Any`."""
    codec: Codec | None = None
    """Converts it; None for plain JSON."""
    annotation: Any = None

    def stored(self, value: Any) -> Any:
        """A value that fits, as it is stored."""
        return value if self.codec is None else self.codec.encode(value)

    def misfits(self, value: Any) -> Sequence[Problem]:
        """What is wrong with a value, by its place in JSON."""
        problems = codec_of(self.annotation).problems(value)
        return problems or [Problem((), f"expected {self.text}, got {briefly(value)} ({type(value).__name__})")]

    def received(self, data: Any) -> Any:
        """Stored data, converted for a receiver with this annotation."""
        return data if self.codec is None else self.codec.decode(data)


def shape_of(annotation: Any) -> Shape:
    """The shape of an annotation, or Unsupported."""
    try:
        return _shape_of(annotation)
    except TypeError:  # a Literal of something that has no hash
        return _shape_of.__wrapped__(annotation)


@lru_cache(maxsize=4096)
def _shape_of(annotation: Any) -> Shape:
    try:
        kind = examine(annotation)
    except RecursionError:
        raise Unsupported(f"{shown(annotation)}: it grows for ever") from None
    if kind.plain:
        return _plain(annotation)._replace(annotation=annotation)
    codec = codec_of(annotation)

    def problems(value: Any, path: str) -> Sequence[str]:
        return [problem.below(path) for problem in codec.problems(value)]

    return Shape(kind.text, problems, lambda value: not codec.problems(value), codec, annotation)


when_registered(_shape_of.cache_clear)


def _anything(value: Any) -> bool:
    return True


def _plain(annotation: Any) -> Shape:
    annotation = unwrapped(annotation)
    origin = get_origin(annotation) or annotation
    if annotation is Any or annotation is object:
        return Shape("anything", not_json, _anything)
    if annotation is None or (isinstance(annotation, type) and annotation in _SCALARS):
        return _scalar(annotation)
    if origin is Union or origin is UnionType:
        return _union([_plain(each) for each in get_args(annotation)])
    if origin is Literal:
        return _literal(get_args(annotation))
    return _dict(get_args(annotation)) if origin in DICTS else _list(get_args(annotation))


_SCALARS: dict[Any, tuple[str, tuple[type, ...]]] = {
    int: ("int", (int,)),
    float: ("float", (float, int)),
    str: ("str", (str,)),
    bool: ("bool", (bool,)),
    NoneType: ("None", (NoneType,)),
    None: ("None", (NoneType,)),
}


def _scalar(annotation: Any) -> Shape:
    text, types = _SCALARS[annotation]

    def problems(value: Any, path: str) -> Sequence[str]:
        # True is an int in Python, but a mistake where a number is asked for.
        if not isinstance(value, types) or (isinstance(value, bool) and types[0] is not bool):
            return [_refusal(path, text, value)]
        return not_json(value, path) if isinstance(value, float) else ()

    def fits(value: Any) -> bool:
        kind = type(value)
        return kind in types or (kind is not bool and isinstance(value, types))

    return Shape(text, problems, fits)


def _list(arguments: tuple[Any, ...]) -> Shape:
    item = _plain(arguments[0] if arguments else Any)
    text = f"list[{item.text}]" if arguments else "list"

    def problems(value: Any, path: str) -> Sequence[str]:
        if not isinstance(value, list | tuple):
            return [_refusal(path, text, value)]
        return [problem for place, each in enumerate(value) for problem in item.problems(each, f"{path}[{place}]")]

    def fits(value: Any) -> bool:
        return isinstance(value, list | tuple) and (item.fits is _anything or all(map(item.fits, value)))

    return Shape(text, problems, fits)


def _dict(arguments: tuple[Any, ...]) -> Shape:
    item = _plain(arguments[1] if arguments else Any)
    text = f"dict[str, {item.text}]" if arguments else "dict"

    def problems(value: Any, path: str) -> Sequence[str]:
        if not isinstance(value, dict):
            return [_refusal(path, text, value)]
        misfits = [f"{path}: the key {key!r} is not a string" for key in value if not isinstance(key, str)]
        for key, each in value.items():
            misfits += item.problems(each, f"{path}[{key!r}]")
        return misfits

    def fits(value: Any) -> bool:
        return isinstance(value, dict) and (item.fits is _anything or all(map(item.fits, value.values())))

    return Shape(text, problems, fits)


def _union(choices: Sequence[Shape]) -> Shape:
    text = " or ".join(each.text for each in choices)

    def problems(value: Any, path: str) -> Sequence[str]:
        return () if any(not each.problems(value, path) for each in choices) else [_refusal(path, text, value)]

    def fits(value: Any) -> bool:
        return any(each.fits(value) for each in choices)

    return Shape(text, problems, fits)


def _literal(choices: tuple[Any, ...]) -> Shape:
    text = "one of " + ", ".join(map(repr, choices))

    def fits(value: Any) -> bool:
        return any(value == each and type(value) is type(each) for each in choices)

    def problems(value: Any, path: str) -> Sequence[str]:
        return () if fits(value) else [_refusal(path, text, value)]

    return Shape(text, problems, fits)


def not_json(value: Any, path: str) -> Sequence[str]:
    """Why a value cannot be kept as JSON, if so."""
    try:
        encode(value)
    except NotJson as error:
        return [f"{path}: {error}"]
    return ()


def _refusal(path: str, text: str, value: object) -> str:
    return f"{path}: expected {text}, got {briefly(value)} ({type(value).__name__})"
