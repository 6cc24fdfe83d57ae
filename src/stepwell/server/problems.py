"""Errors as problem+json (RFC 9457): what happened, to what, and what to do next."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from .. import errors
from ..base.codec import clean, encode_checked
from ..base.forms.refusals import words_of
from ..base.words import message_of, short_name
from ..define.document.problems import problem_place
from ..errors import DocumentError, TriggerError

log = logging.getLogger("stepwell")

MEDIA_TYPE = "application/problem+json"
MAX_PROBLEMS = 100
_STATUS: tuple[tuple[type[errors.StepwellError], int], ...] = (
    (errors.RunConflict, 409),
    (errors.RunError, 409),
    (errors.PipelineBusy, 409),
    (errors.PipelineError, 422),
    (errors.GraphError, 422),
    (errors.DefinitionError, 422),
    (errors.InputError, 422),
    (errors.StateError, 422),
    (errors.UnsafePath, 422),
    (errors.StoreFull, 507),
    (errors.StoreError, 503),
    (errors.NotStored, 503),
    (errors.EngineClosed, 503),
)
"""The first that fits."""
RETRY_AFTER = {409: "1", 429: "1", 503: "2"}
"""Seconds, for problems that may pass."""


class HttpProblem(Exception):
    """Raised by a route to answer with this status and detail."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        title: str | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.title = status, detail, title
        self.headers = dict(headers or {})
        self.more = more


def problem_response(problem: HttpProblem, path: str = "") -> Response:
    status = problem.status
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": problem.title or HTTPStatus(status).phrase,
        "status": status,
        "detail": clean(problem.detail),
    }
    if path:
        body["instance"] = clean(path)
    return Response(encode_checked(body | problem.more), status, problem.headers, MEDIA_TYPE)


def problem_of(error: BaseException) -> HttpProblem:
    """The problem that an error is reported as."""
    if isinstance(error, HttpProblem):
        return error
    if isinstance(error, ClientDisconnect):  # whom no answer reaches
        return HttpProblem(400, "the request ended before its body did")
    if isinstance(error, TriggerError):
        found = [{"path": each.path, "message": clean(each.message)} for each in error.problems]
        return HttpProblem(422, clean(error.public_message), problems=found)
    if isinstance(error, DocumentError | errors.GraphError):
        return HttpProblem(422, clean(error.public_message), problems=_listed(error.problems))
    if isinstance(error, ValidationError):  # of what a route made of its parameters
        message = "; ".join(f"{_path(each['loc'])}: {words_of(each)[0]}" for each in error.errors()[:3])
        return HttpProblem(422, clean(f"the request is refused: {message}"))
    if isinstance(error, errors.RunNotFound):
        message = f"{error.public_message}; GET /api/v1/runs lists those there are"
        return HttpProblem(404, clean(message), error="RunNotFound", run_id=clean(error.run_id))
    for kind, status in _STATUS:
        if isinstance(error, kind):
            more = {"run_id": clean(error.run_id)} if isinstance(error, errors.RunError) else {}
            passes = isinstance(error, errors.RunBusy | errors.PipelineBusy | errors.StoreError)
            headers = {"Retry-After": RETRY_AFTER[status]} if passes and status in RETRY_AFTER else {}
            if isinstance(error, errors.StoreError | errors.NotStored):
                log.warning("a request failed: %s: %s", short_name(type(error)), message_of(error))
            detail = clean(error.public_message)
            return HttpProblem(status, detail, error=short_name(type(error)), headers=headers, **more)
    log.error("a request failed: %s: %s", short_name(type(error)), message_of(error), exc_info=error)
    return HttpProblem(500, "an error in Stepwell itself; the log of the server has more")


def public_text(error: BaseException) -> str:
    """The error of something that went on by itself, as clients may read it."""
    told = error.public_message if isinstance(error, errors.StepwellError) else "the log of the server has more"
    return f"{short_name(type(error))}: {told}"


def _listed(problems: Sequence[object]) -> list[dict[str, Any]]:
    """Each problem with its JSON path, and its line where that is known."""
    places = map(problem_place, problems[:MAX_PROBLEMS])
    return [
        {name: clean(value) if isinstance(value, str) else value for name, value in place.items()} for place in places
    ]


def add_problems(app: FastAPI) -> None:
    """Answer every exception of a route as a problem."""

    async def known(request: Request, error: Exception) -> Response:
        return problem_response(problem_of(error), request.url.path)

    async def by_status(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        told = {
            404: f"there is nothing at {request.url.path}",
            405: f"{request.url.path} does not take {request.method}",
        }
        detail = told.get(error.status_code, str(error.detail))
        return problem_response(HttpProblem(error.status_code, detail, headers=error.headers), request.url.path)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        found = [
            {"path": _path(each.get("loc", ())), "message": clean(words_of(each)[0])}
            for each in error.errors()[:MAX_PROBLEMS]
        ]
        told = "; ".join(f"{each['path']}: {each['message']}" for each in found[:3])
        return problem_response(HttpProblem(422, f"the request is refused: {told}", problems=found), request.url.path)

    app.add_exception_handler(HttpProblem, known)
    app.add_exception_handler(errors.StepwellError, known)
    app.add_exception_handler(ClientDisconnect, known)
    app.add_exception_handler(HTTPException, by_status)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(Exception, known)


def _path(place: Sequence[Any]) -> str:
    return clean(".".join(map(str, place)))[:200]
