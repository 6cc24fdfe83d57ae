"""Runs workflows: the engine, the local runner and what they are made of.

Names are loaded when they are first used: looking at stored runs needs no engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .aio.engine import AsyncEngine
    from .aio.run import AsyncRun
    from .bodies.context import Context
    from .engine import Engine
    from .runs.run import Run
    from .runs.views import AttemptView, LogRecord, NodeError, NodeView

_VIEWS = ("AttemptView", "LogRecord", "NodeError", "NodeView")
_HOME = {
    "AsyncEngine": "aio.engine",
    "AsyncRun": "aio.run",
    "Context": "bodies.context",
    "Engine": "engine",
    "Run": "runs.run",
    **dict.fromkeys(_VIEWS, "runs.views"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
