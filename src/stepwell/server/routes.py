"""Where routes are declared. Each names the scope it needs; one without a scope cannot be declared.

Endpoints are called with the service, and their result is serialised in the same thread. FastAPI would check every answer a
second time, write it in yet another thread, and look the service up for each request. At hundreds of requests a second that is
a third of the processor time.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar, get_type_hints

from fastapi import FastAPI, Response
from fastapi.routing import APIRoute
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request

from ..answers.scopes import SCOPES, Scope
from ..define.document.problems import Unreadable
from ..define.document.text import read_text
from .access.guard import PRINCIPAL, Principal
from .access.tokens import allows
from .problems import MEDIA_TYPE, HttpProblem
from .service import Given, ServerProcess
from .threads import ThreadKind

JSON = "application/json"


def bound(
    endpoint: Callable[..., Any], service: ServerProcess, options: dict[str, Any], threads: ThreadKind
) -> Callable[..., Any]:
    """The function that FastAPI calls for an endpoint: it has the same parameters except the service."""
    hints = get_type_hints(endpoint, include_extras=True)
    own = [name for name, hint in hints.items() if hint is Given]
    injected = dict.fromkeys(own, service)
    signature = inspect.signature(endpoint)
    parameters = [
        parameter.replace(annotation=hints[name]) for name, parameter in signature.parameters.items() if name not in own
    ]
    returns = None if hints["return"] is type(None) else hints["return"]
    status = options["status_code"]

    def written(returned: Any, values: Mapping[str, Any]) -> Response:
        return _written(returned, status, next((value for value in values.values() if type(value) is Response), None))

    is_coroutine = inspect.iscoroutinefunction(endpoint)

    async def made(**values: Any) -> Response:
        if is_coroutine:
            return written(await endpoint(**injected, **values), values)
        return await service.threads.run(threads, lambda: written(endpoint(**injected, **values), values))

    functools.update_wrapper(made, endpoint)
    summary, description = _summary(endpoint)
    options["summary"] = summary
    made.__doc__ = description
    made.__signature__ = signature.replace(parameters=parameters, return_annotation=returns)  # type: ignore[attr-defined]
    return made


def _summary(endpoint: Callable[..., Any]) -> tuple[str, str]:
    """The first sentence of the docstring, and the rest."""
    text = inspect.getdoc(endpoint) or ""
    sentence, _, rest = text.partition("\n\n") if "\n\n" in text.partition(". ")[0] else text.partition(". ")
    return " ".join(sentence.split()).removesuffix("."), rest.strip()


def _written(returned: Any, status: int, response: Response | None) -> Response:
    """What an endpoint returned, as JSON. `response` has the status and headers that the endpoint has set, if any."""
    if isinstance(returned, Response):
        return returned
    if response is not None and response.status_code:
        status = response.status_code
    body = b"" if returned is None else to_json(returned, inf_nan_mode="null")
    made = Response(body, status, media_type=None if status == 204 else JSON)
    if response is not None:
        made.raw_headers += [header for header in response.raw_headers if header[0] != b"content-length"]
    return made


Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
SHORT = 64 * 1024
"""Bytes of a body that is read on the loop; a longer one would hold it up."""
SCOPE = "x-scope"
OPEN = "x-open"


class StrictRequest(Request):
    """A request whose body is JSON without surprises: not too deep, no key twice, no NaN, no half of a character."""

    async def json(self) -> Any:
        body, threads = await self.body(), self.app.state.service.threads
        try:
            read = read_text(body, "json") if len(body) < SHORT else await threads.run("check", read_text, body, "json")
        except Unreadable as error:
            place = f" (line {error.line}, column {error.column})" if error.line else ""
            raise HttpProblem(400, f"the body is refused: {error.message}{place}") from None
        if read.repeated:
            named = ".".join(map(str, read.repeated[0]))
            raise HttpProblem(400, f"the body is refused: the key {named[:200]!r} is there more than once")
        return read.data


class GuardedRoute(APIRoute):
    """A route that checks the scope of the caller first."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        needed: Scope | None = (self.openapi_extra or {}).get(SCOPE)
        takes_json = self.body_field is not None

        async def guarded(request: Request) -> Response:
            if needed is not None:
                require(request, needed)
            if takes_json:
                _check_type(request)
            try:
                return await handle(StrictRequest(request.scope, request.receive))
            except (
                HTTPException
            ) as error:  # FastAPI puts "there was an error parsing the body" in the place of problems
                raise error.__cause__ if isinstance(error.__cause__, HttpProblem) else error from None

        return guarded


def _check_type(request: Request) -> None:
    """Refuse a body that is not declared as JSON, such as a form."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    sends = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    if sends and kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        given = f"not as {kind[:100]!r}" if kind else "and say so"
        raise HttpProblem(415, f"send the body as JSON, {given}: Content-Type: application/json")


def require(request: Request, needed: Scope) -> Principal:
    principal: Principal | None = request.scope.get(PRINCIPAL)
    if principal is None:
        raise HttpProblem(401, "expected a token", headers={"WWW-Authenticate": "Bearer"})
    if not allows(principal.scopes, needed):
        problem = f"this needs the scope {needed!r}, and {principal.name!r} has {', '.join(principal.scopes)}"
        raise HttpProblem(403, f"{problem}; `stepwell token create --scope {needed}` makes a token that may")
    return principal


_REFUSALS = {
    401: "There is no valid token.",
    403: "The token has too small a scope.",
    404: "What the path names is not there.",
    409: "The state of the run forbids it.",
    413: "The body, or the answer, is too large.",
    415: "The body is of another content type.",
    421: "The server is not called by this name.",
    422: "The request is refused; `problems` lists why.",
    400: "The request cannot be read.",
    429: "There are too many requests; `Retry-After` says when to try again.",
    503: "The store cannot be used at the moment, or the server is too busy; `Retry-After` says when to try again.",
    507: "The store is full.",
}
_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemRecord"}}}
Responses = dict[int | str, dict[str, Any]]


def _described(responses: Responses) -> Responses:
    """The responses of a route, and those that every route has."""
    every: Responses = {status: {"description": text} for status, text in _REFUSALS.items()}
    every |= responses
    return {
        status: {"content": _PROBLEM, **response} if int(status) >= 400 else response
        for status, response in every.items()
    }


class Routes:
    """The routes of one part of the API.

    routes = Routes("runs")

    @routes.get("/runs/{run_id}", "read")
    def get_run(run_id: str, service: Given) -> RunDetail: ...

    An endpoint that is no coroutine is called in a thread: of those that commit, of those that read, or as `threads` says.
    """

    def __init__(self, tag: str, prefix: str = "/api/v1") -> None:
        self._tag, self._prefix = tag, prefix
        self._declared: list[tuple[str, Callable[..., Any], ThreadKind, dict[str, Any]]] = []

    def add_to(self, app: FastAPI) -> None:
        for path, endpoint, threads, options in self._declared:
            called = bound(endpoint, app.state.service, options, threads)
            app.router.add_api_route(self._prefix + path, called, route_class_override=GuardedRoute, **options)

    def get(self, path: str, scope: Scope, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("GET", path, scope, options)

    def post(self, path: str, scope: Scope, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("POST", path, scope, options)

    def put(self, path: str, scope: Scope, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("PUT", path, scope, options)

    def delete(self, path: str, scope: Scope, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("DELETE", path, scope, options)

    def open(self, method: str, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """A route that needs no token: it checks its callers itself, or reveals nothing."""
        return self._add(method, path, None, options)

    def _add(
        self, method: str, path: str, scope: Scope | None, options: dict[str, Any]
    ) -> Callable[[Endpoint], Endpoint]:
        assert scope is None or scope in SCOPES
        more: Mapping[str, Any] = {SCOPE: scope} if scope is not None else {OPEN: True, "security": []}
        extra = {**options.pop("openapi_extra", {}), **more}
        responses = _described(options.pop("responses", {}))
        usual: ThreadKind = "commit" if scope in SCOPES[1:] and method != "GET" else "read"
        threads: ThreadKind = options.pop("threads", usual)

        def register(endpoint: Endpoint) -> Endpoint:
            common = {"methods": [method], "tags": [self._tag], "openapi_extra": extra, "responses": responses}
            declared = {**common, "operation_id": endpoint.__name__, "status_code": 200, **options}
            self._declared.append((path, endpoint, threads, declared))
            return endpoint

        return register


def described_body(schema: Mapping[str, Any], example: Mapping[str, Any], **others: Any) -> dict[str, Any]:
    """What OpenAPI says of a body that a route reads itself: JSON of this schema, or one of these other types."""
    content = {JSON: {"schema": schema, "example": example}, **others}
    return {"requestBody": {"required": True, "content": content}}


def open_path(route: APIRoute) -> str | None:
    """The path of a route that is open, up to its first variable; None if the route is guarded."""
    return route.path.partition("{")[0] if (route.openapi_extra or {}).get(OPEN) else None
