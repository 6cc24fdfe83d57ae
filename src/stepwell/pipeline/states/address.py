"""Addresses of states, taken apart."""

from __future__ import annotations

from collections.abc import Iterable


def split_address(address: str) -> tuple[str, str]:
    """The directory whose manifest has a state, with a final `/` unless it is the root, and the key it has there.

    >>> split_address("final/a.md"), split_address("audio/a/"), split_address("chapters/moby/{part}/{n}.txt")
    (('final/', 'a.md'), ('audio/', 'a/'), ('chapters/moby/', '{part}/{n}.txt'))
    """
    head = address.removesuffix("/").partition("{")[0]
    cut = head.rfind("/") + 1
    return address[:cut], address[cut:]


def members_base(address: str) -> str:
    """The directory that the files of a state are relative to: `chapters/moby/` of `chapters/moby/{number}.txt`."""
    return address if address.endswith("/") else split_address(address)[0]


def member_paths(address: str, members: Iterable[str]) -> list[str]:
    base = members_base(address)
    return [base + member for member in members]


def probe_path(address: str) -> str:
    """A path that stands for an address where its safety is checked."""
    folder, key = split_address(address)
    return folder + (key.removesuffix("/") if "{" not in key else "x")


def draft_name(key: str) -> str:
    """What the name of a draft ends with: the key, as far as a file can have it as a name."""
    return key.removesuffix("/").replace("{", "(").replace("}", ")").replace("/", "+")
