"""What is wrong with data, and where. `Problems` collects until everything is known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeAlias

from ..codec import json_path
from ..words import briefly, nearest

Path: TypeAlias = tuple[str | int, ...]
"""The way to a value: names of fields and positions in lists."""
MAX_PROBLEMS = 20_000
"""Of one document. The search for more ends here."""
MAX_NEAREST = 20
"""Unknown names of one document for which the nearest is looked for."""


class Problem(NamedTuple):
    """One thing that is wrong, and where."""

    place: Path
    message: str
    line: int | None = None
    column: int | None = None
    """In the file, from 1; None when the data is not a text."""
    found: str | None = None
    expected: str | None = None
    nearest: str | None = None
    """The name that was probably meant."""

    @property
    def path(self) -> str:
        """The JSON path: `$.nodes[2].config.url`."""
        return json_path(self.place)

    def below(self, name: str) -> str:
        """The problem for people who know the value as `name`."""
        return f"{name}{self.path[1:]}: {self.message}"

    def __str__(self) -> str:
        at = f" (line {self.line}, column {self.column})" if self.line is not None else ""
        return f"{self.path}{at}: {self.message}"

    def as_json(self) -> dict[str, Any]:
        fields = {"path": self.path, **self._asdict()}
        return {name: value for name, value in fields.items() if value is not None and name != "place"}


class Misfit(ValueError):
    """A value does not fit its type or form. Each problem has its place below the value."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


class TooManyProblems(Exception):
    """The data has so many problems that the search for more has ended."""


class Marks(Protocol):
    """The places of the values of a text."""

    def at(self, path: Path) -> tuple[int, int]:
        """Line and column of the value at a path, from 1; if there is none, those of the nearest value above it."""
        ...


class Problems(list[Problem]):
    """Problems in the order in which they were found. Lines and columns are looked up at the end: mostly there are none."""

    def __init__(self, repeated: Iterable[Path] = ()) -> None:
        """`repeated` are keys that an object has more than once."""
        super().__init__()
        self._nearest: dict[tuple[str, str], str | None] = {}
        """By unknown name and what it should be. Many nodes may have the same mistake."""
        for path in islice(repeated, MAX_PROBLEMS):
            self.add(path, "this key is there more than once", found=path[-1])

    def add(
        self, path: Path, message: str, *, found: Any = ..., expected: str | None = None, nearest: str | None = None
    ) -> None:
        if len(self) >= MAX_PROBLEMS:
            raise TooManyProblems
        text = None if found is ... else shown(found)
        self.append(Problem(path, message, None, None, text, expected, nearest))

    def expected(self, path: Path, expected: str, found: Any = ...) -> None:
        """Report a value that is something else than expected. It is not shown if it may be a secret: then leave it out."""
        got = "" if found is ... else f", got {shown(found)}"
        self.add(path, f"expected {expected}{got}", found=found, expected=expected)

    def nearest(self, kind: str, name: str, known: Collection[str]) -> str | None:
        """The nearest name of its kind, for the first few names: comparing one with thousands takes a while."""
        asked = (kind, name)
        if asked not in self._nearest and len(self._nearest) < MAX_NEAREST:
            self._nearest[asked] = nearest(name, known)
        return self._nearest.get(asked)

    def unknown(self, path: Path, what: str, name: str, known: Collection[str]) -> None:
        """Report an unknown name, with a suggestion."""
        close = self.nearest(what, name, known)
        if close is not None:
            rest = f"; did you mean {close!r}?"
        else:
            names = list(islice(known, 21))
            rest = f"; there are {', '.join(names[:20])}{' and more' if len(names) > 20 else ''}" if names else ""
        self.add(path, f"{what}{rest}", found=name, nearest=close)

    def placed(self, marks: Marks) -> list[Problem]:
        """The problems with their lines and columns, in the order of the file."""
        placed = []
        for problem in self:
            line, column = marks.at(problem.place)
            placed.append(problem._replace(line=line, column=column))
        return sorted(placed, key=lambda each: (each.line or 0, each.column or 0))


def shown(value: Any) -> str:
    """A value in the words of JSON, shortened."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    return briefly(value)
