"""Checks configs against the pydantic models of handlers. Values are never shown, because they may be secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, TypeAlias

from ..base.forms.problems import Path, Problem
from ..base.forms.refusals import MISSING, UNKNOWN, ModelRefusal, refusals
from ..base.secret_refs import SecretRef, leaves
from ..base.words import suggestion
from ..errors import PermanentError

MAX_PROBLEMS = 100
"""Unknown keys of one config that are reported."""
Later: TypeAlias = Callable[[str], bool]
"""Whether a text is known only later: it holds a template."""


def fields_of(model: Any) -> frozenset[str] | None:
    """The fields of a model; None when there is none, or more may come."""
    if model is None or model.model_config.get("extra") == "allow":
        return None
    return frozenset(_names(model))


def problems_of(model: Any, config: object, later: Later | None = None) -> list[Problem]:
    """All problems of a config under a model, except with values that are known only later."""
    if not isinstance(config, Mapping):
        return [Problem((), f"expected an object, got {kind_of(config)}")]
    if model is None:
        return []
    problems = dict.fromkeys(islice(_unknown_keys(model, config), MAX_PROBLEMS))
    for refusal in _refusals(model, config):
        place = refusal.place
        if refusal.kind in (MISSING, UNKNOWN) or not is_known_later(config, place, later):
            has_secret = isinstance(_value_at(config, place), SecretRef)
            problems[Problem(place, "no secret can be used here" if has_secret else refusal.message)] = None
    return [*problems]


def validated(name: str, model: Any, config: Mapping[str, Any]) -> Any:
    """The config as an instance of the model; PermanentError lists everything that is wrong."""
    if model is None:
        return dict(config)
    from pydantic import ValidationError

    if not any(_unknown_keys(model, config)):
        try:
            return model.model_validate(config)
        except ValidationError:
            pass
    problems = problems_of(model, config)
    lines = "\n".join(f"  - {'.'.join(map(str, ('config', *each.place)))}: {each.message}" for each in problems)
    raise PermanentError(f"{name} cannot work with its config:\n{lines}")


def _refusals(model: Any, config: Mapping[str, Any]) -> list[ModelRefusal]:
    """What the model refuses, besides the unknown keys of the config itself."""
    from pydantic import ValidationError

    try:
        model.model_validate(config)
    except ValidationError as error:
        listed = refusals(error.errors(include_url=False, include_input=False), config)
        return [each for each in listed if each.kind != UNKNOWN or len(each.place) > 1]
    return []


def _unknown_keys(model: Any, config: Mapping[str, Any]) -> Iterator[Problem]:
    """Unknown keys are problems unless the model allows them: otherwise a typo would be ignored."""
    if model.model_config.get("extra") == "allow":
        return
    known = _names(model)
    for key in config:
        if key not in known:
            yield Problem((key,), f"unknown field{f'; {suggestion(key, known)}' if known else ''}")


@cache
def _names(model: Any) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


def is_known_later(config: object, path: Path, later: Later | None) -> bool:
    """Whether the refused value contains a text that is known only later."""
    value: Any = config
    for step in path:
        if isinstance(value, str | SecretRef):
            break
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            break  # a field that is missing
    texts = (leaf for _, leaf in leaves(value) if isinstance(leaf, str))
    return any(SecretRef.of(each) is not None or (later is not None and later(each)) for each in texts)


def _value_at(config: Any, place: Path) -> Any:
    """The value at a place; None for a field that is missing."""
    value = config
    for step in place:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def kind_of(value: object) -> str:
    return "null" if value is None else _KINDS.get(type(value), type(value).__name__)


_KINDS = {bool: "true or false", str: "a text", int: "a number", float: "a number", list: "a list", dict: "an object"}
