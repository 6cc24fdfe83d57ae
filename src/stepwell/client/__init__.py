"""The engine of another machine, over HTTP: `Client` has the verbs of `Engine`, and gives the same `Run`."""

from .client import AsyncClient, Client
from .events import Event

__all__ = ["AsyncClient", "Client", "Event"]
