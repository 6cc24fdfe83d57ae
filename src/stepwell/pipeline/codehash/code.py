"""`HashedCode`: the hash of the code that a stage runs, its parts, and what could not be followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from ...base.codec import encode_checked
from ..states.single import Stamp


@dataclass
class HashedCode:
    hash: str = ""
    parts: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The hash of each function, class and constant, and `file:line`, by `module:name`."""
    unknown: dict[str, str] = field(default_factory=dict)
    """What could not be followed, and where. Its changes go unnoticed unless it is declared (`uses`, `version`)."""
    files: dict[str, Stamp | None] = field(default_factory=dict)
    """The files in which the parts are, with their stamps when they were read."""
    is_static: bool = True
    """Whether all parts are in files, and none are values that only this process has."""
    seen: list[tuple[Mapping[str, Any], str, object]] = field(default_factory=list)
    """The values of names in modules. A name with another value means that its module was reloaded."""

    @property
    def is_current(self) -> bool:
        """False if one of its modules was reloaded, or something in it replaced."""
        return all(home.get(name) is value for home, name, value in self.seen)


def config_hash(config: Mapping[str, Any], handler: str | None = None) -> str:
    return digest({"config": config, "handler": handler}) if config or handler else ""


def changed_parts(before: Mapping[str, str], now: Mapping[str, tuple[str, str]]) -> list[str]:
    """List what changed between two versions of a stage, with places, for people."""
    told = [
        f"{name} {'changed' if name in before else 'is new'}{f' ({where})' if where else ''}"
        for name, (part_hash, where) in now.items()
        if before.get(name) != part_hash
    ]
    return told + [f"{name} is no longer used" for name in before if name not in now]


def digest(value: Any) -> str:
    return sha256(encode_checked(value)).hexdigest()[:32]
