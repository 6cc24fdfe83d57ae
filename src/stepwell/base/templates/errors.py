"""What is wrong with a template, or with the values it was rendered with."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import DefinitionError, PermanentError


class TemplateError(DefinitionError, PermanentError):
    """A template is written wrongly, or cannot be rendered. `line` and `column` count from 1, inside the template.

    `template` is its text and `path` where it stands in the config of its node, once they are known.
    """

    def __init__(self, problem: str, *, line: int | None = None, column: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
        self.column = column
        self.template: str | None = None
        self.path: str | None = None

    def __str__(self) -> str:
        at = "" if self.path is None else f"{self.path}: "
        if self.template is None:
            return at + self.problem
        where = "" if self.line in (None, 1) else f" (line {self.line})"
        text = self.template if len(self.template) <= 80 else self.template[:77] + "..."
        return f"{at}{self.problem}{where}, in {text!r}"


class Missing(TemplateError):
    """A name or a field is not there, or is null in place of a value. `default` catches it.

    `advice` makes the end of the message when somebody reads it: a loop may raise thousands that nobody reads.
    """

    def __init__(
        self,
        problem: str,
        *,
        line: int | None = None,
        column: int | None = None,
        advice: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(problem, line=line, column=column)
        self._advice = advice

    def __str__(self) -> str:
        if self._advice is not None:
            self.problem, self._advice = self.problem + self._advice(), None
        return super().__str__()
