"""What handlers may reach: services, secrets, private addresses, programs. Nothing is allowed by default."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..base.networks import Allowed
from ..base.secrets import Secrets

if TYPE_CHECKING:
    from ..base.services import Service

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Gives the addresses of a host."""


@dataclass(frozen=True, slots=True)
class Access:
    """What the handlers of an engine may reach."""

    services: Mapping[str, Service] = field(default_factory=dict)
    secrets: Secrets = field(default_factory=Secrets)
    private: tuple[Allowed, ...] = ()
    """Private addresses that `http_request` may reach."""
    shell: frozenset[str] | bool = False
    """Programs that `shell` may start: none, any, or these."""
    resolve: Resolve | None = None
    """Resolves host names; None: the system does."""


def owners_of(services: Mapping[str, Service]) -> dict[str, frozenset[str]]:
    """By secret: the services that use it."""
    owners: dict[str, frozenset[str]] = {}
    for name, service in services.items():
        for reference in service.references:
            owners[reference.name] = owners.get(reference.name, frozenset()) | {name}
    return owners
