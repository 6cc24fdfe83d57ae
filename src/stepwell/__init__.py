"""Stepwell: a durable workflow engine.

Names are loaded when they are first used, so `import stepwell` costs next to nothing. All errors are in `stepwell.errors`; here
are those that programs catch, and those that bodies raise.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .base.version import __version__

if TYPE_CHECKING:
    from . import errors as errors
    from . import reducers as reducers
    from . import testing as testing
    from .base import types as types
    from .base.masking import secret
    from .client import AsyncClient, Client
    from .core.graph import Graph, NodeSpec, Retry
    from .core.model import AttemptStatus, NodeStatus, RunStatus
    from .define import PREVIOUS, Builder, Delta, Saved, Workflow, step, task
    from .define.document import Document
    from .engine import AsyncEngine, AsyncRun, Context, Engine, NodeView, Run
    from .errors import (
        DefinitionError,
        InputError,
        PermanentError,
        RetryLater,
        RunCancelled,
        RunConflict,
        RunFailed,
        RunNotFound,
        RunPaused,
        RunStillActive,
        StepwellError,
        StoreError,
        TransientError,
    )
    from .handlers import Handlers, handler
    from .history import effect
    from .pipeline import Entity, Pipeline
    from .triggers import Trigger

_HOMES = {
    "base.masking": ("secret",),
    "client": ("AsyncClient", "Client"),
    "core.graph": ("Graph", "NodeSpec", "Retry"),
    "core.model": ("AttemptStatus", "NodeStatus", "RunStatus"),
    "define": ("PREVIOUS", "Builder", "Delta", "Saved", "Workflow", "step", "task"),
    "define.document": ("Document",),
    "engine": ("AsyncEngine", "AsyncRun", "Context", "Engine", "NodeView", "Run"),
    "errors": (
        *("DefinitionError", "InputError", "RunCancelled", "RunConflict", "RunFailed", "RunNotFound", "RunPaused"),
        *("RunStillActive", "StepwellError", "StoreError"),
        *("PermanentError", "RetryLater", "TransientError"),
    ),
    "handlers": ("Handlers", "handler"),
    "history": ("effect",),
    "pipeline": ("Entity", "Pipeline"),
    "triggers": ("Trigger",),
}
_ROOMS = {"errors": "errors", "reducers": "reducers", "testing": "testing", "types": "base.types"}
"""Modules that are used by name: `stepwell.types.register(...)`, `stepwell.testing.speedrun(...)`."""
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "PREVIOUS",
    "AsyncClient",
    "AsyncEngine",
    "AsyncRun",
    "AttemptStatus",
    "Builder",
    "Client",
    "Context",
    "DefinitionError",
    "Delta",
    "Document",
    "Engine",
    "Entity",
    "Graph",
    "Handlers",
    "InputError",
    "NodeSpec",
    "NodeStatus",
    "NodeView",
    "PermanentError",
    "Pipeline",
    "Retry",
    "RetryLater",
    "Run",
    "RunCancelled",
    "RunConflict",
    "RunFailed",
    "RunNotFound",
    "RunPaused",
    "RunStatus",
    "RunStillActive",
    "Saved",
    "StepwellError",
    "StoreError",
    "TransientError",
    "Trigger",
    "Workflow",
    "__version__",
    "effect",
    "handler",
    "secret",
    "step",
    "task",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f".{_ROOMS[name]}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'stepwell' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
