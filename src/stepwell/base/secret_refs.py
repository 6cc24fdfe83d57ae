"""References to secrets: `secret:NAME`, where somebody wrote exactly this text, in a document or in a setting.

What a template yields is never one, so an answer of `secret:DB` stays text. `secrets` finds their values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .forms.refusals import EXPECTED
from .words import shown

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler

PREFIX = "secret:"
NAME_PATTERN = r"[A-Za-z_][A-Za-z0-9_.\-]{0,199}"
_NAME = re.compile(NAME_PATTERN)


@dataclass(frozen=True, slots=True, repr=False)
class SecretRef:
    """A reference to a secret, shown as `secret:NAME`. Only the worker that uses it knows the value."""

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InputError(f"{shown(self.name)} cannot be the name of a secret: use letters, digits, _ . and -")

    @classmethod
    def of(cls, text: object) -> SecretRef | None:
        """The reference written as `secret:NAME`; None for any other text.

        For what a person wrote, never for what a template, a run or a server gave.
        """
        if isinstance(text, str) and text.startswith(PREFIX) and _NAME.fullmatch(text[len(PREFIX) :]):
            return cls(text[len(PREFIX) :])
        return None

    def __repr__(self) -> str:
        return PREFIX + self.name

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """In a config only an instance is one. Data that looks like one is data."""
        from pydantic_core import core_schema

        return core_schema.custom_error_schema(
            core_schema.is_instance_schema(cls), custom_error_type=EXPECTED, custom_error_message=f"{PREFIX}NAME"
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{PREFIX}{_NAME.pattern}$", "description": "a reference to a secret"}


def leaves(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Every value in a config that has no parts, with its path."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from leaves(item, (*path, place))
    else:
        yield path, value


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of a config in which `change` is applied to every value that has no parts."""
    if isinstance(value, Mapping):
        return {key: mapped(item, change) for key, item in value.items()}
    return [mapped(item, change) for item in value] if isinstance(value, list | tuple) else change(value)


def references(value: object) -> Iterator[SecretRef]:
    """Every reference in a config."""
    return (leaf for _, leaf in leaves(value) if isinstance(leaf, SecretRef))


def references_of(value: Any) -> Any:
    """A config with references in place of `secret:NAME`. Only for what a person wrote, never for the output of a template."""
    return mapped(value, lambda leaf: SecretRef.of(leaf) or leaf)


def has_references(value: object) -> bool:
    """Whether there is one. It is fast, because it is called for every config."""
    kind = type(value)
    if kind is dict:
        return any(map(has_references, value.values()))  # type: ignore[attr-defined]
    if kind is list:
        return any(map(has_references, value))  # type: ignore[call-overload]
    return kind is not str and any(True for _ in references(value))
