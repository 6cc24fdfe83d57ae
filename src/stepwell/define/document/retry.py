"""`retry` as JSON: a number of attempts, or an object."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, MinLen
from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from ...base.forms.problems import Misfit, Problem
from ...base.forms.reading import Expected, Form, Omittable, PositiveSeconds, Seconds
from ...core.graph import Retry

_CONTENTS = "a whole number of attempts, or an object with max_attempts"


class RetryForm(Form):
    """How often, and after which delay, a failed node is tried again."""

    noun = "retry"
    contents = _CONTENTS
    max_attempts: Annotated[int, Ge(1), Expected("a whole number of at least 1")]
    base_delay: PositiveSeconds = 1.0
    max_delay: Seconds = 60.0
    retry_on: Omittable[
        Annotated[
            list[str],
            MinLen(1),
            Expected("a list of names of exceptions, or of functions that are asked about one"),
            AfterValidator(sorted),
        ]
    ] = None

    @model_validator(mode="after")
    def _check_delays(self) -> RetryForm:
        if self.max_delay < self.base_delay:
            message = f"expected at least base_delay, which is {self.base_delay:g}, got {self.max_delay:g}"
            raise Misfit([Problem(("max_delay",), message)])
        return self


def _plain(value: int | RetryForm) -> int | RetryForm:
    """Attempts alone as a number, so that there is one form."""
    if isinstance(value, RetryForm) and value == RetryForm(max_attempts=value.max_attempts):
        return value.max_attempts
    return value


AnyRetry = Annotated[
    Annotated[int, Ge(1), Expected(_CONTENTS), Tag("attempts")] | Annotated[RetryForm, Tag("object")],
    Discriminator(lambda value: "attempts" if isinstance(value, int) else "object"),
    AfterValidator(_plain),
    Field(description="attempts, or `{max_attempts, base_delay, max_delay, retry_on}`"),
]


def retry_of(form: int | RetryForm | None) -> Retry | None:
    """The policy that a form describes."""
    if not isinstance(form, RetryForm):
        return Retry.of(form)
    names = None if form.retry_on is None else tuple(form.retry_on)
    return Retry(form.max_attempts, form.base_delay, form.max_delay, names)
