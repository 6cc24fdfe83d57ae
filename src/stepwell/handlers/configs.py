"""Checks configs against the pydantic models of handlers. Values are never shown, because they may be secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, TypeAlias

from ..base.forms.problems import Problem
from ..base.secret_refs import SecretRef, leaves
from ..base.words import suggestion
from ..errors import PermanentError

MAX_PROBLEMS = 100
"""Unknown keys of one config that are reported."""
Path: TypeAlias = tuple[str | int, ...]
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
        return [Problem((), f"an object is needed, not {kind_of(config)}")]
    if model is None:
        return []
    found = dict.fromkeys(islice(_unknown_keys(model, config), MAX_PROBLEMS))
    for path, message, is_certain in _refusals(model, config):
        if is_certain or not is_known_later(config, path, later):
            place, value = _existing(config, path)
            found[Problem(place, "no secret can be used here" if isinstance(value, SecretRef) else message)] = None
    return [*found]


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


def _refusals(model: Any, config: Mapping[str, Any]) -> Iterator[tuple[Path, str, bool]]:
    """Path, message, and whether it holds for any values."""
    from pydantic import ValidationError

    try:
        model.model_validate(config)
    except ValidationError as error:
        for each in error.errors(include_url=False, include_context=False, include_input=False):
            if each["type"] == "extra_forbidden" and len(each["loc"]) == 1:
                continue  # reported by `_unknown_keys`
            is_certain = each["type"] in ("missing", "extra_forbidden")
            yield each["loc"], each["msg"].removeprefix("Value error, "), is_certain


def _unknown_keys(model: Any, config: Mapping[str, Any]) -> Iterator[Problem]:
    """Unknown keys are problems unless the model allows them: otherwise a typo would be ignored."""
    if model.model_config.get("extra") == "allow":
        return
    known = _names(model)
    for key in config:
        if key not in known:
            yield Problem((key,), f"there is no such field{f'; {suggestion(key, known)}' if known else ''}")


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
            continue  # the name of a member of a union, which is no step into the value
    texts = (leaf for _, leaf in leaves(value) if isinstance(leaf, str))
    return any(SecretRef.of(each) is not None or (later is not None and later(each)) for each in texts)


def _existing(config: Any, path: Path) -> tuple[Path, Any]:
    """A path without the steps that pydantic adds for members of a union, and the value there."""
    found: list[str | int] = []
    value = config
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            is_item = isinstance(step, int) and isinstance(value, list | tuple)
            if step != path[-1] or not (is_item or isinstance(value, Mapping)):  # else something that is missing
                continue
            value = None
        found.append(step)
    return tuple(found), value


def kind_of(value: object) -> str:
    return "null" if value is None else _KINDS.get(type(value), type(value).__name__)


_KINDS = {bool: "true or false", str: "a text", int: "a number", float: "a number", list: "a list", dict: "an object"}
