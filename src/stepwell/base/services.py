"""Services that handlers may call: named in the settings with their base URL and credentials, so documents name no hosts.

[services.crm]
base_url = "https://crm.example.com/api"
bearer = "secret:CRM_TOKEN"

[services.openai]
base_url = "https://api.openai.com/v1"
bearer = "secret:OPENAI_KEY"
model = "gpt-4o-mini"
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ..errors import InputError
from .secrets import PREFIX, SecretRef, references
from .words import shown

Text = str | SecretRef
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
_HEADER = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_KEYS = ("base_url", "bearer", "basic", "headers", "query", "model", "private")
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Service:
    """The address and credentials of a service."""

    name: str
    base_url: str
    bearer: Text | None = None
    """`Authorization: Bearer ...`"""
    basic: tuple[Text, Text] | None = None
    """User and password."""
    headers: Mapping[str, Text] = field(default_factory=dict)
    query: Mapping[str, Text] = field(default_factory=dict)
    model: str | None = None
    """What `llm_service` asks for when a document names none."""
    private: bool = False
    """It may be at a private address. One at localhost says so by its URL."""

    @property
    def references(self) -> tuple[SecretRef, ...]:
        """The secrets it needs."""
        return tuple(references([self.bearer, self.basic, self.headers, self.query]))


def services_of(table: object) -> tuple[dict[str, Service], list[str]]:
    """The `[services]` of the settings, and what is wrong with them."""
    found: dict[str, Service] = {}
    problems: list[str] = []
    if not isinstance(table, Mapping):
        return found, ["a table is needed, one entry for each service"]
    for name, entry in table.items():
        if isinstance(entry, Service):
            found[name] = entry
            continue
        wrong = [*_wrong(name, entry)]
        problems += [f"{name}: {each}" for each in wrong]
        if not wrong:
            found[name] = _service(name, entry)
    return found, problems


def owners_of(services: Mapping[str, Service]) -> dict[str, frozenset[str]]:
    """By secret: the services that use it."""
    found: dict[str, frozenset[str]] = {}
    for name, service in services.items():
        for ref in service.references:
            found[ref.name] = found.get(ref.name, frozenset()) | {name}
    return found


def checked_services(table: object) -> dict[str, Service]:
    """The services given to an engine; InputError lists all problems."""
    found, problems = services_of(table)
    if problems:
        raise InputError("\n".join(f"services: {problem}" for problem in problems))
    return found


def _service(name: str, entry: Mapping[str, Any]) -> Service:
    parsed = urlsplit(entry["base_url"])
    basic = entry.get("basic")
    return Service(
        name,
        entry["base_url"].rstrip("/"),
        _text(entry.get("bearer")),
        None if basic is None else (_text(basic[0]), _text(basic[1])),  # type: ignore[arg-type]
        {key: _text(value) for key, value in entry.get("headers", {}).items()},  # type: ignore[misc]
        {key: _text(value) for key, value in entry.get("query", {}).items()},  # type: ignore[misc]
        entry.get("model"),
        entry.get("private", parsed.hostname in _LOCAL),
    )


def _text(value: str | None) -> Text | None:
    """A text of the settings, as a reference if it is one."""
    return SecretRef.of(value) or value


def _wrong(name: object, entry: object) -> list[str]:
    """The problems of an entry. Values are not shown: one may be a secret in place of its reference."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return [f"{shown(name)} cannot be the name of a service: letters, digits, _ and - are needed"]
    if not isinstance(entry, Mapping):
        return ['a table is needed, with at least base_url = "https://..."']
    problems = [f"there is no {key!r}; there are {', '.join(_KEYS)}" for key in entry if key not in _KEYS]
    problems += _wrong_url(entry.get("base_url"))
    if "bearer" in entry:
        problems += _wrong_text("bearer", entry["bearer"])
    if "basic" in entry:
        pair = entry["basic"]
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            problems.append(f'basic needs user and password, as ["stepwell", "{PREFIX}CRM_PASSWORD"]')
        else:
            problems += [*_wrong_text("basic", pair[0]), *_wrong_text("basic", pair[1])]
    if "bearer" in entry and "basic" in entry:
        problems.append("either bearer or basic is needed, not both")
    for key in ("headers", "query"):
        table = entry.get(key, {})
        if not isinstance(table, Mapping):
            problems.append(f"{key} needs a table")
            continue
        for item, value in table.items():
            problems += _wrong_text(f"{key}.{item}", value)
            if key == "headers" and not _HEADER.fullmatch(str(item)):
                problems.append(f"{shown(item)} cannot be the name of a header")
    if "model" in entry and not (isinstance(entry["model"], str) and entry["model"]):
        problems.append("model needs some text")
    if not isinstance(entry.get("private", False), bool):
        problems.append("private needs true or false")
    return problems


def _wrong_url(url: object) -> list[str]:
    if not isinstance(url, str) or not url:
        return ['base_url = "https://..." is needed']
    try:
        parsed = urlsplit(url)
        parsed.port  # noqa: B018  # raises when it is none
    except ValueError as error:
        return [f"base_url: {error}"]
    if parsed.scheme not in ("http", "https") or not parsed.hostname:
        return ["base_url needs http:// or https:// and a host"]
    if parsed.username is not None or parsed.password is not None:
        return ['base_url may hold no user and password: basic = ["user", "secret:NAME"] says them']
    if parsed.query or parsed.fragment or not url.isprintable() or " " in url:
        return ["base_url may hold no query and no fragment, and no blanks"]
    return []


def _wrong_text(key: str, value: object) -> list[str]:
    if not isinstance(value, str) or not value or not value.isprintable():
        return [f"{key} needs one line of text, or {PREFIX}NAME"]
    if value.startswith(PREFIX) and SecretRef.of(value) is None:
        return [f"{key}: a secret is named by letters, digits and _, as {PREFIX}CRM_TOKEN"]
    return []
