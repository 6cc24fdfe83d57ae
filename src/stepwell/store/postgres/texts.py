"""Texts that PostgreSQL can be asked for."""

from __future__ import annotations

NOWHERE = "\N{REPLACEMENT CHARACTER} no text"
"""Asked for in place of a text that nothing stored can have."""


def storable(text: str) -> str:
    """The text, or one that nothing is called: PostgreSQL has no NUL, and half of a character is no text."""
    if text.isprintable():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return NOWHERE
    return NOWHERE if "\x00" in text else text
