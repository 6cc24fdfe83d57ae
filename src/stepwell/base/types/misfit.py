"""Errors about types, and about one value that does not fit its type."""

from __future__ import annotations


class Unsupported(Exception):
    """An annotation that cannot be kept as JSON; says why, and what to do."""


class Wrong(ValueError):
    """One value is not as needed. Its place is added by the caller."""
