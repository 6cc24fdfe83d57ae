"""A request as a document asks for it, its secrets still references. Nothing here needs httpx, as a replay does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...base.secret_refs import SecretRef, mapped
from ...base.services import Text
from .config import Parse

CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization", "idempotency-key"})
"""Headers that are not recorded, and do not follow a redirect to another host."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    method: str
    url: str
    headers: Mapping[str, Text] = field(default_factory=dict)
    query: Sequence[tuple[str, Text]] = ()
    bearer: Text | None = None
    basic: tuple[Text, Text] | None = None
    json: Any = None
    form: Mapping[str, Text] | None = None
    body: Text | None = None
    parse: Parse = "auto"
    max_bytes: int = 10_000_000
    redirects: int = 5
    service: str | None = None
    private: bool = False
    """The host of the URL may have a private address, because the settings name it."""
    idempotency_key: str = ""


def recorded(
    method: str,
    where: Mapping[str, str],
    *,
    headers: Mapping[str, Text] | None = None,
    query: Sequence[tuple[str, Text]] = (),
    json: Any = None,
    form: Mapping[str, Text] | None = None,
    body: Text | None = None,
    **limits: Any,
) -> dict[str, Any]:
    """What identifies a request in the record: secrets by name, no credentials, and not its key, another in every run.

    Of a service its name and the path: where it is and what it wants to be told may be other there where it is replayed.
    """
    request: dict[str, Any] = {"method": method, **where}
    told = {
        name.lower(): value
        for name, value in sorted((headers or {}).items())
        if isinstance(value, SecretRef) or name.lower() not in CREDENTIALS
    }
    said = {"query": list(query), "headers": told, "json": json, "form": form, "body": body}
    return request | {name: named(value) for name, value in said.items() if value not in (None, {}, [])}


def named(value: Any) -> Any:
    """Data with the names of secrets in place of references."""
    return mapped(value, lambda leaf: str(leaf) if isinstance(leaf, SecretRef) else leaf)
