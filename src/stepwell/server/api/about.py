"""What the pages show of their server."""

from __future__ import annotations

from ...answers.fleet import ServerRecord
from ...base.version import __version__
from ..routes import Routes
from ..service import Given

routes = Routes("server")


@routes.get("/server", "read")
def get_server(service: Given) -> ServerRecord:
    """The server: its version, and the name, colour and address of traces that its settings give it."""
    about = service.about
    return {
        "version": __version__,
        "environment": about.environment,
        "environment_colour": about.environment_colour,
        "trace_url": about.trace_url,
    }
