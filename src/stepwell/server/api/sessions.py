"""Who asks; and the exchange of a token for a cookie, which browsers use."""

from __future__ import annotations

from fastapi import Response
from starlette.requests import Request

from ...answers.fleet import SessionRecord
from ..access.guard import PRINCIPAL, Principal
from ..access.sessions import close_session, open_session
from ..problems import HttpProblem
from ..routes import Routes
from ..service import Given

routes = Routes("session")


def _who(request: Request) -> SessionRecord:
    principal: Principal = request.scope[PRINCIPAL]
    token = None if principal.token is None else principal.token.id
    return {
        "name": principal.name,
        "scopes": [*principal.scopes],
        "token": token,
        "by_cookie": principal.session is not None,
    }


@routes.get("/session", "read")
async def get_session(request: Request) -> SessionRecord:
    """The caller, and what it may do."""
    return _who(request)


@routes.post("/session", "read")
async def begin_session(request: Request, service: Given, response: Response) -> SessionRecord:
    """Exchange a token, sent as Authorization: Bearer, for a cookie that scripts cannot read and other sites cannot send."""
    principal: Principal = request.scope[PRINCIPAL]
    if principal.token is None or principal.session is not None:
        raise HttpProblem(409, "a session begins with a token: send it as Authorization: Bearer TOKEN")
    name, text, seconds = await service.commit(open_session, service.store, principal.token)
    forwarded = request.headers.get("x-forwarded-proto", "")
    secure = request.url.scheme == "https" or forwarded == "https"
    response.set_cookie(name, text, max_age=seconds, path="/", secure=secure, httponly=True, samesite="strict")
    return _who(request)


@routes.delete("/session", "read", status_code=204)
async def end_session(request: Request, service: Given) -> Response:
    """End the session of the cookie that comes with this request."""
    principal: Principal = request.scope[PRINCIPAL]
    response = Response(status_code=204)
    if principal.session is not None:
        name = await service.commit(close_session, service.store, principal.session)
        response.delete_cookie(name, path="/", httponly=True, samesite="strict")
    return response
