"""The application: routes, the guard before all of them, and a check that none was forgotten."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.types import ASGIApp

from ..answers.scopes import MEANINGS
from ..base.version import __version__
from .access.guard import Guard
from .api import parts
from .counting import RequestCounts
from .openapi import openapi_document
from .problems import add_problems
from .routes import OPEN, SCOPE, Routes, open_path
from .service import ServerProcess
from .web_ui import WebUi

DESCRIPTION = """Workflows, their runs and what can be asked of them.

Everything needs a token, `Authorization: Bearer sw_...`, of a scope that each operation names (`x-scope`). Each scope includes
those before it: """ + ", ".join(f"`{scope}` ({told})" for scope, told in MEANINGS.items())


def make_app(service: ServerProcess, *, hosts: Collection[str] = (), root: str = "") -> ASGIApp:
    """The ASGI application over a service. `hosts`: names the server answers to, besides loopback and addresses. `root`: the
    path that a proxy serves it below, as in `/stepwell`."""

    app = FastAPI(
        title="Stepwell",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        servers=[{"url": root}] if root else None,
        redirect_slashes=False,
    )
    app.state.service = service
    for routes in (*parts(), _openapi_route(app)):
        routes.add_to(app)
    add_problems(app)
    check_routes(app)
    requests = service.requests = RequestCounts(app)
    served = [route for route in app.routes if isinstance(route, APIRoute)]
    paths = [path for route in served if (path := open_path(route)) is not None]
    web_ui = WebUi({route.path.split("/", 2)[1] for route in served}, root)
    return Guard(requests, service.callers, hosts, paths, web_ui=web_ui, root=root)


def check_routes(app: FastAPI) -> None:
    """Every route must name its scope. A mount or another kind of route would be served to any caller."""
    for route in app.routes:
        extra = (route.openapi_extra or {}) if isinstance(route, APIRoute) else {}
        if not (SCOPE in extra or OPEN in extra):
            raise AssertionError(f"{getattr(route, 'path', route)} names no scope and is not open")


def _openapi_route(app: FastAPI) -> Routes:
    routes = Routes("openapi")

    @routes.get("/openapi.json", "read", include_in_schema=False)
    async def openapi() -> dict[str, Any]:
        return openapi_document(app)

    return routes
