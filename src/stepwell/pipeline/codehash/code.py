"""`Code`: the hash of the code that a stage runs, its parts, and what could not be followed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from ...codec import encode_checked


class Code(NamedTuple):
    hash: str
    parts: Mapping[str, tuple[str, str]]
    """The hash of each function, class and constant, and `file:line`, by `module:name`."""
    unknown: Mapping[str, str]
    """What could not be followed, and where. Its changes go unnoticed unless it is declared (`uses`, `version`)."""
    files: Mapping[str, Any]
    """The files in which the parts are, with their stamps when they were read."""
    is_static: bool
    seen: tuple[tuple[Mapping[str, Any], str, object], ...] = ()

    @property
    def is_current(self) -> bool:
        """False if one of its modules was reloaded, or something in it replaced."""
        return all(home.get(name) is value for home, name, value in self.seen)


def code_of(
    function: Any, *, version: str | None = None, uses: Iterable[Any] = (), skipped: Iterable[type] = ()
) -> Code:
    """Hash a function and everything of the project that it uses, or with `version` only that."""
    if version is not None:
        return Code(f"v:{version}", {"version": (version, "")}, {}, {}, False)
    from .follow import Follower

    follower = Follower(skipped)
    follower.add(function)
    for used in uses:
        if isinstance(used, str):
            follower.package(used)
        else:
            follower.add(used)
    digest = _digest({name: part[0] for name, part in follower.parts.items()})
    found = (follower.parts, follower.unknown, follower.files, follower.is_static)
    return Code(digest, *found, tuple(follower.seen))


def config_hash(config: Mapping[str, Any], handler: str | None = None) -> str:
    return _digest({"config": config, "handler": handler}) if config or handler else ""


def changed_parts(before: Mapping[str, str], now: Mapping[str, tuple[str, str]]) -> list[str]:
    """List what changed between two versions of a stage, with places, for people."""
    told = []
    for name, (digest, where) in now.items():
        at = f" ({where})" if where else ""
        if name not in before:
            told.append(f"{name} is new{at}")
        elif before[name] != digest:
            told.append(f"{name} changed{at}")
    return told + [f"{name} is no longer used" for name in before if name not in now]


def _digest(value: Any) -> str:
    return sha256(encode_checked(value)).hexdigest()[:32]
