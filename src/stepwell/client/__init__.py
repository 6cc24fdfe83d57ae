"""The engine of another machine, over HTTP: `Client` has the verbs of `Engine`, and gives the same `Run`."""

from .asynchronous import AsyncClient
from .client import Client
from .events import Event

__all__ = ["AsyncClient", "Client", "Event"]
