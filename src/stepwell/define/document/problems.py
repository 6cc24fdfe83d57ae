"""Errors about documents."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.forms.problems import Problem
from ...errors import GraphError


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
        return DocumentError(source, [Problem((), self.message, self.line, self.column)])
