"""Errors about documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ...base.forms.problems import Problem
from ...core.graph import GraphProblem
from ...errors import DocumentError

if TYPE_CHECKING:
    from ...answers.problem import ProblemPlace


class Unreadable(Exception):
    """A text is neither JSON nor YAML, or too large or too deep to be read."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column

    def as_error(self, source: str) -> DocumentError:
        return DocumentError(source, [Problem((), self.message, self.line, self.column)])


def problem_place(problem: object) -> ProblemPlace:
    """A problem of a GraphError or a DocumentError as JSON."""
    if isinstance(problem, Problem):
        return cast("ProblemPlace", problem.as_json())
    if isinstance(problem, GraphProblem) and problem.path is not None:
        return {"path": problem.path, "message": problem.message}
    return {"path": "$", "message": str(problem)}
