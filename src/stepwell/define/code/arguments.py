"""Checks the args of nodes against the signatures of their jobs where a workflow is written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any

from ...base.codec import check
from ...base.forms.problems import Misfit
from ...base.types.codecs import to_json
from ...base.types.shapes import Shape
from ...core.kernel.folding import PLAIN
from ...errors import DefinitionError, NotJson
from ..types.signatures import shapes_of
from .address import address_of


class JobParameters:
    """What a job takes. Nodes of one job mostly have the same args, so each set of names is checked once."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._address = address_of(function)
        builtin = inspect.isbuiltin(function)  # their signatures are often wrong
        parameters = () if builtin else tuple(inspect.signature(function).parameters.values())
        named = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
        self._names = tuple(each.name for each in named)
        self._required = tuple(each.name for each in named if each.default is each.empty)
        self._by_position = next((each.name for each in parameters if each.kind is each.POSITIONAL_ONLY), None)
        self._takes_any = builtin or any(each.kind is each.VAR_KEYWORD for each in parameters)
        self._problems: dict[str, str] = {}
        self._shapes: Mapping[str, Shape] = shapes_of(function, (*self._names, "return"), self._problems.__setitem__)
        self._right: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()

    def stored(self, node: str, args: Mapping[str, Any], own: tuple[str, ...]) -> dict[str, Any]:
        """The args of a node as JSON; DefinitionError if its job does not take them. The engine adds the parameters `own`."""
        names = tuple(args)
        if (names, own) not in self._right:
            self._check_names(node, names, own)
            self._right.add((names, own))
        stored: dict[str, Any] = {}
        for name, value in args.items():
            shape = self._shapes.get(name)
            if shape is None:
                stored[name] = value if type(value) in PLAIN else by_type(value)
            elif shape.codec is None and shape.fits(value):
                stored[name] = value
            else:
                stored[name] = self._converted(node, name, value, shape)
        return stored

    def _converted(self, node: str, name: str, value: Any, shape: Shape) -> Any:
        try:
            if shape.codec is None:
                raise Misfit(shape.misfits(value))
            return shape.codec.encode(value)
        except Misfit as misfit:
            message = "; ".join(problem.below(name) for problem in misfit.problems[:10])
            raise DefinitionError(f"the args of {node!r} do not fit {self._address}: {message}") from None

    def _check_names(self, node: str, names: Collection[str], own: Collection[str]) -> None:
        takes = f"{self._address} takes {', '.join(name for name in self._names if name not in own) or 'none'}"
        if self._by_position is not None:
            raise DefinitionError(
                f"the job of {node!r}, {self._address}, takes {self._by_position!r} by position only, and args are given by "
                f"name: remove the / after it"
            )
        unknown = [name for name in names if name not in self._names]
        if unknown and not self._takes_any:
            raise DefinitionError(f"the args of {node!r} contain {', '.join(map(repr, unknown))}, but {takes}")
        missing = [name for name in self._required if name not in names and name not in own]
        if missing:
            raise DefinitionError(f"the args of {node!r} lack {', '.join(map(repr, missing))}: {takes}")
        for name in (*names, "return"):
            if name in self._problems:
                raise DefinitionError(f"the job of {node!r}, {self._address}: {self._problems[name]}")


def by_type(value: Any) -> Any:
    """A value without an annotation as JSON, by its own type. What cannot be kept is refused later."""
    try:
        check(value)
    except NotJson:
        try:
            return to_json(value)
        except Misfit:
            return value
    return value


@lru_cache(maxsize=1024)
def arguments_of(function: Callable[..., Any]) -> JobParameters | None:
    """What a function takes; None if it has no signature, like some C functions."""
    try:
        return JobParameters(function)
    except (TypeError, ValueError):
        return None
