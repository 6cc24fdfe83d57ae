"""Networks that somebody allows, as they are written: `10.0.0.0/8`, `127.0.0.1:8080`, `[::1]:8080`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple

from ..errors import InputError
from .words import shown

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Allowed(NamedTuple):
    """A private network that may be reached, at one port or at any."""

    network: Network
    port: int | None = None


def allowed_networks(given: Iterable[str]) -> tuple[Allowed, ...]:
    """`10.0.0.0/8`, `127.0.0.1`, `127.0.0.1:8080`, `[fd00::]/8`, `[::1]:8080`."""
    return tuple(map(_allowed, given))


def _allowed(text: str) -> Allowed:
    network, port = text, None
    if text.startswith("["):
        network, _, rest = text[1:].partition("]")
        mask, _, port = rest.partition(":")
        network += mask
    elif text.count(":") == 1:
        network, _, port = text.partition(":")
    try:
        number = int(port) if port else None
        if number is not None and not 0 < number < 65536:
            raise ValueError
        return Allowed(ipaddress.ip_network(network, strict=False), number)
    except ValueError:
        forms = "10.0.0.0/8, 127.0.0.1:8080 or [::1]:8080"
        raise InputError(f"private_networks: {shown(text)} is no network: write {forms}") from None
