"""What is wrong with a document, and where."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol

from ...base.codec import json_path
from ...base.words import briefly, nearest
from ...errors import GraphError

Path = tuple[str | int, ...]
MAX_PROBLEMS = 20_000
"""Of one document. The search for more ends here."""
MAX_NEAREST = 20
"""Unknown names of one document for which the nearest is looked for."""


class Problem(NamedTuple):
    """One thing that is wrong with a document."""

    path: str
    """The JSON path: `$.nodes[2].config.url`."""
    message: str
    line: int | None = None
    column: int | None = None
    """In the file, from 1; None when the document is not a text."""
    found: str | None = None
    expected: str | None = None
    nearest: str | None = None
    """What may have been meant."""

    def __str__(self) -> str:
        at = f" (line {self.line}, column {self.column})" if self.line is not None else ""
        return f"{self.path}{at}: {self.message}"

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if value is not None}


class DocumentError(GraphError):
    """A document has problems. `problems` lists all of them, each with its JSON path, line and column."""

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        self.source = source
        super().__init__(problems, what=source)


class Unreadable(Exception):
    """A text is neither JSON nor YAML, or too large or too deep to be read."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column

    def as_error(self, source: str) -> DocumentError:
        return DocumentError(source, [Problem("$", self.message, self.line, self.column)])


class TooManyProblems(DocumentError):
    """A document has so many problems that the search for more has ended."""


class Marks(Protocol):
    """Where the values of a text stand."""

    def at(self, path: Path) -> tuple[int, int]:
        """Line and column of the value at a path, from 1; where there is none, those of the nearest value above it."""
        ...


class Collected:
    """Problems found so far. Their lines and columns are looked up at the end: mostly there are none."""

    def __init__(self, repeated: Iterable[Path] = ()) -> None:
        """`repeated` are keys that an object has more than once."""
        self.found: list[tuple[Path, Problem]] = []
        self._nearest: dict[tuple[str, str], str | None] = {}
        """By unknown name and what it should be: the nearest that there is. Many nodes may have the same mistake."""
        for path in islice(repeated, MAX_PROBLEMS):
            self.add(path, "this key is there more than once", found=path[-1])

    def add(
        self,
        path: Path,
        message: str,
        *,
        found: Any = ...,
        expected: str | None = None,
        nearest: str | None = None,
    ) -> None:
        told = None if found is ... else shown(found)
        if len(self.found) >= MAX_PROBLEMS:
            raise TooManyProblems("the document", [each for _, each in self.found])
        self.found.append((path, Problem(json_path(path), message, None, None, told, expected, nearest)))

    def needed(self, path: Path, expected: str, found: Any) -> None:
        self.add(path, f"{expected} is needed, not {shown(found)}", found=found, expected=expected)

    def nearest(self, kind: str, name: str, known: Collection[str]) -> str | None:
        """What of its kind may have been meant, for the first few names: comparing one with thousands takes a while."""
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
        for path, problem in self.found:
            line, column = marks.at(path)
            placed.append(problem._replace(line=line, column=column))
        return sorted(placed, key=lambda each: (each.line or 0, each.column or 0))

    def __bool__(self) -> bool:
        return bool(self.found)


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
