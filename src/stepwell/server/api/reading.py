"""The one door for clients of this package: questions about what is stored, as `model.wire` writes them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from ...model.wire import Unreadable, answer_to_wire, query_from_wire
from ..models import Body
from ..problems import Problem
from ..routes import Routes
from ..service import Given

routes = Routes("reading")

MAX_ROWS = 200_000
"""Rows of one answer. More must be read page by page."""


class Questions(Body):
    """Queries, each with its name and its fields, as in {"query": "GetRun", "run_id": "r-1"}."""

    queries: list[dict[str, Any]] = Field(max_length=500, examples=[[{"query": "GetRun", "run_id": "r-1"}]])


class Answers(BaseModel):
    """The answers, in order, all from one moment."""

    answers: list[Any]
    now: int = Field(description="The store's time, in microseconds.")


@routes.post("/read", "read")
def read(body: Questions, service: Given) -> Answers:
    """Ask the store. For `stepwell.Client`, which has all of a run's surface by it; others use the routes of runs."""
    try:
        asked: list[Any] = [query_from_wire(each) for each in body.queries]
    except Unreadable as error:
        raise Problem(422, f"the query is refused: {error}") from None
    most = [each._replace(limit=min(each.limit, MAX_ROWS)) if hasattr(each, "limit") else each for each in asked]
    answers = service.store.read(most)
    for given, query, answer in zip(asked, most, answers, strict=True):
        if given != query and getattr(answer, "cursor", None) is not None:
            raise Problem(413, f"{type(query).__name__} finds more than {MAX_ROWS:,} rows: ask for pages of them")
    return Answers(answers=[answer_to_wire(each) for each in answers], now=service.store.now())
