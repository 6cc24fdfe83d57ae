"""A codec: an annotation compiled once into what brings values into JSON and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from ...errors import NotJson
from ..codec import encode
from ..forms.problems import Misfit, Problem
from .foreign import when_registered
from .kinds import examine
from .misfit import Wrong


class Codec:
    """Of one annotation. Nothing is compiled before it is used."""

    __slots__ = ("annotation", "text")

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation
        self.text = examine(annotation).text

    def encode(self, value: Any) -> Any:
        """A value as JSON that can be read back; Misfit if it does not fit the annotation.

        What is JSON of such a value already is one, too.
        """
        from .converter import writer

        data = _told(writer(self.annotation), value)
        self.decode(data)
        return data

    def decode(self, data: Any) -> Any:
        """The value that JSON represents; Misfit if it does not fit the annotation."""
        from .converter import reader

        return _told(reader(self.annotation), data)

    def problems(self, value: Any) -> tuple[Problem, ...]:
        """What is wrong with a value, or with its JSON."""
        try:
            self.encode(value)
        except Misfit as misfit:
            return misfit.problems
        return ()


@cache
def codec_of(annotation: Any) -> Codec:
    return Codec(annotation)


when_registered(codec_of.cache_clear)


def to_json(value: Any) -> Any:
    """A value as JSON by its own type, without an annotation. What JSON cannot hold is left as it is."""
    from .converter import writer

    return _told(writer(Any), value)


def encoded_by_type(value: Any) -> bytes:
    """The canonical bytes of a value, by its own type; NotJson if it cannot be stored.

    Plain JSON, which is what there is mostly, is only encoded.
    """
    try:
        return encode(value)
    except NotJson as error:
        try:
            converted = to_json(value)
        except Misfit:
            raise error from None
        return encode(converted)


def _told(convert: Callable[[Any], Any], value: Any) -> Any:
    try:
        return convert(value)
    except RecursionError:
        raise Misfit([Problem((), "it is nested too deeply, or contains itself")]) from None
    except Exception as error:
        raise Misfit(list(_problems(error, ()))) from error


def _problems(error: BaseException, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """What cattrs found, each with its place."""
    for inner, where in _inside(error):
        at = path if where is None else (*path, where)
        if isinstance(inner, ExceptionGroup):
            yield from _problems(inner, at)
        elif isinstance(inner, KeyError) and where is not None:
            yield Problem(at, "this field is missing")
        elif isinstance(inner, Wrong):
            yield Problem(at, str(inner))
        elif isinstance(inner, Misfit):
            yield from (each._replace(place=(*at, *each.place)) for each in inner.problems)
        else:
            yield Problem(at, f"{type(inner).__name__}: {inner}")


def _inside(error: BaseException) -> Iterator[tuple[BaseException, str | int | None]]:
    if not isinstance(error, ExceptionGroup) or not hasattr(error, "group_exceptions"):
        yield error, None
        return
    with_notes, without = error.group_exceptions()
    for inner, note in with_notes:
        yield inner, getattr(note, "name", None) if hasattr(note, "name") else note.index
    for inner in without:
        yield inner, None
