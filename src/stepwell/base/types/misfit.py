"""Errors about types, and about values that do not fit them."""

from __future__ import annotations

from collections.abc import Sequence

from ..forms.problems import Problem


class Unsupported(Exception):
    """An annotation that cannot be kept as JSON; says why, and what to do."""


class Misfit(Exception):
    """A value that does not fit the type it was held against."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


class Wrong(ValueError):
    """One value is not as needed. Its place is added by the caller."""
