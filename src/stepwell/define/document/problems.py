"""Errors about documents."""

from __future__ import annotations

from ...base.forms.problems import Problem
from ...errors import DocumentError


class Unreadable(Exception):
    """A text is neither JSON nor YAML, or too large or too deep to be read."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column

    def as_error(self, source: str) -> DocumentError:
        return DocumentError(source, [Problem((), self.message, self.line, self.column)])
