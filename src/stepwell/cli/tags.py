"""Tags, as people write them."""

from __future__ import annotations

from ..errors import InputError


def named_value(given: str) -> tuple[str, str]:
    """A tag.

    >>> named_value("customer=7")
    ('customer', '7')
    """
    name, equals, value = given.partition("=")
    if not (name and equals and value):
        raise InputError(f"--tag {given}: a name and a value are needed, as in --tag customer=7")
    return name, value
