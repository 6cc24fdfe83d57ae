"""A text that says nothing."""

from __future__ import annotations


class Unreadable(Exception):
    """A text is neither JSON nor YAML, or more than anybody should read. It never leaves this room."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
