"""The one door for clients of this package: questions about what is stored, as `model.wire` writes them."""

from __future__ import annotations

from typing import Any

from fastapi import Response
from pydantic import BaseModel, Field
from pydantic_core import to_json

from ...base.codec import MAX_BYTES
from ...core.model.wire import WireError, answer_to_wire, query_from_wire
from ..models import Body
from ..problems import HttpProblem
from ..routes import JSON, Routes
from ..service import Given

routes = Routes("reading")

MAX_ROWS = 200_000
"""Rows of all answers to one request. More must be read page by page."""


class Questions(Body):
    """Queries, each with its name and its fields, as in {"query": "GetRun", "run_id": "r-1"}."""

    queries: list[dict[str, Any]] = Field(max_length=500, examples=[[{"query": "GetRun", "run_id": "r-1"}]])


class Answers(BaseModel):
    """The answers, in order, all from one moment."""

    answers: list[Any]
    now: int = Field(description="The store's time, in microseconds.")


@routes.post("/read", "read", response_model=Answers)
def read(body: Questions, service: Given) -> Any:
    """Ask the store. For `stepwell.Client`, which has all of a run's surface by it; others use the routes of runs."""
    try:
        asked: list[Any] = [query_from_wire(each) for each in body.queries]
    except WireError as error:
        raise HttpProblem(422, f"the query is refused: {error}") from None
    kinds = [type(each) for each in asked]  # records of two kinds with the same fields are equal
    once = [query for _, query in dict.fromkeys(zip(kinds, asked, strict=True))]  # the same 500 times is read once
    most = MAX_ROWS // max(1, sum(hasattr(each, "limit") for each in once))
    limited = [each._replace(limit=min(each.limit, most)) if hasattr(each, "limit") else each for each in once]
    written: dict[Any, bytes] = {}
    for query, given, answer in zip(limited, once, service.store.read(limited), strict=True):
        if given != query and getattr(answer, "cursor", None) is not None:
            raise HttpProblem(413, f"{type(query).__name__} finds more than {most:,} rows: ask for pages of them")
        written[type(given), given] = to_json(answer_to_wire(answer))
    answers = [written[each] for each in zip(kinds, asked, strict=True)]
    if len(answers) > 1 and sum(map(len, answers)) > MAX_BYTES:
        raise HttpProblem(413, f"the answers have more than {MAX_BYTES:,} bytes: ask for fewer at once")
    return Response(b'{"answers":[%b],"now":%d}' % (b",".join(answers), service.store.now()), media_type=JSON)
