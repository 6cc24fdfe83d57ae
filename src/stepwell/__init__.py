"""Stepwell: a durable workflow engine.

Names are loaded when they are first used, so `import stepwell` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from . import types as types
    from .define import PREVIOUS, Builder, Delta, Workflow, step, task
    from .define.document import Document, DocumentError
    from .errors import (
        DefinitionError,
        GraphError,
        InputError,
        MissingJob,
        PermanentError,
        ReplayMismatch,
        RetryLater,
        RunCancelled,
        RunConflict,
        RunFailed,
        RunNotFound,
        RunStillActive,
        StateError,
        StepwellError,
        Stopped,
        StoreError,
        TransientError,
    )
    from .graph import Graph, NodeSpec, Retry
    from .handlers import Handlers, handler
    from .masking import secret
    from .model import AttemptStatus, NodeStatus, RunStatus
    from .pipeline import Entity, Pipeline
    from .replay import effect
    from .runner import Context, Engine, Run

_HOMES = {
    "define": ("PREVIOUS", "Builder", "Delta", "Workflow", "step", "task"),
    "define.document": ("Document", "DocumentError"),
    "errors": (
        "DefinitionError",
        "GraphError",
        "InputError",
        "MissingJob",
        "PermanentError",
        "ReplayMismatch",
        "RetryLater",
        "RunCancelled",
        "RunConflict",
        "RunFailed",
        "RunNotFound",
        "RunStillActive",
        "StateError",
        "StepwellError",
        "Stopped",
        "StoreError",
        "TransientError",
    ),
    "graph": ("Graph", "NodeSpec", "Retry"),
    "handlers": ("Handlers", "handler"),
    "masking": ("secret",),
    "model": ("AttemptStatus", "NodeStatus", "RunStatus"),
    "pipeline": ("Entity", "Pipeline"),
    "replay": ("effect",),
    "runner": ("Context", "Engine", "Run"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "PREVIOUS",
    "AttemptStatus",
    "Builder",
    "Context",
    "DefinitionError",
    "Delta",
    "Document",
    "DocumentError",
    "Engine",
    "Entity",
    "Graph",
    "GraphError",
    "Handlers",
    "InputError",
    "MissingJob",
    "NodeSpec",
    "NodeStatus",
    "PermanentError",
    "Pipeline",
    "ReplayMismatch",
    "Retry",
    "RetryLater",
    "Run",
    "RunCancelled",
    "RunConflict",
    "RunFailed",
    "RunNotFound",
    "RunStatus",
    "RunStillActive",
    "StateError",
    "StepwellError",
    "Stopped",
    "StoreError",
    "TransientError",
    "Workflow",
    "__version__",
    "effect",
    "handler",
    "secret",
    "step",
    "task",
]


def __getattr__(name: str) -> Any:
    if name == "types":  # a room of its own: `stepwell.types.register(...)`
        return import_module(".types", __name__)
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'stepwell' has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "types"])
