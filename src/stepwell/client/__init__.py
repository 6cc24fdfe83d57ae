"""The engine of another machine, over HTTP: `Client` has the verbs of `Engine`, and gives the same `Run`."""

from ..engine.following import Event
from .client import AsyncClient, Client

__all__ = ["AsyncClient", "Client", "Event"]
