"""Errors about types, and about values that do not fit them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..codec import json_path


class Unsupported(Exception):
    """An annotation that cannot be kept as JSON; says why, and what to do."""


class Problem(NamedTuple):
    """Something wrong at a place in JSON."""

    path: tuple[str | int, ...]
    message: str

    def below(self, name: str) -> str:
        """For people who know the value as `name`."""
        return f"{name}{json_path(self.path)[1:]}: {self.message}"

    def __str__(self) -> str:
        return self.below("$")


class Misfit(Exception):
    """A value that does not fit the type it was held against."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


class Wrong(ValueError):
    """One value is not as needed. Its place is added by the caller."""
