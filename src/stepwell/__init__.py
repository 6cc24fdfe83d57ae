"""Stepwell: a durable workflow engine.

Names are loaded when they are first used, so `import stepwell` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .base.version import __version__

if TYPE_CHECKING:
    from . import reducers as reducers
    from . import testing as testing
    from .base import types as types
    from .base.masking import secret
    from .client import AsyncClient, Client
    from .core.graph import Graph, NodeSpec, Retry
    from .core.model import AttemptStatus, NodeStatus, RunStatus
    from .define import PREVIOUS, Builder, Delta, Workflow, step, task
    from .define.document import Document, DocumentError
    from .engine import AsyncEngine, AsyncRun, Context, Engine, NodeView, Run
    from .errors import *
    from .handlers import Handlers, handler
    from .history import effect
    from .pipeline import Entity, Pipeline
    from .triggers import Trigger, TriggerError

_HOMES = {
    "client": ("AsyncClient", "Client"),
    "define": ("PREVIOUS", "Builder", "Delta", "Workflow", "step", "task"),
    "define.document": ("Document", "DocumentError"),
    "core.graph": ("Graph", "NodeSpec", "Retry"),
    "handlers": ("Handlers", "handler"),
    "base.masking": ("secret",),
    "core.model": ("AttemptStatus", "NodeStatus", "RunStatus"),
    "pipeline": ("Entity", "Pipeline"),
    "history": ("effect",),
    "engine": ("AsyncEngine", "AsyncRun", "Context", "Engine", "NodeView", "Run"),
    "triggers": ("Trigger", "TriggerError"),
}
_ROOMS = {"reducers": "reducers", "testing": "testing", "types": "base.types"}
"""Modules that are used by name: `stepwell.types.register(...)`, `stepwell.testing.speedrun(...)`."""
_HOME = {name: home for home, names in _HOMES.items() for name in names}
"""By name; all other names are errors."""

__all__ = [
    "PREVIOUS",
    "AsyncClient",
    "AsyncEngine",
    "AsyncRun",
    "AttemptStatus",
    "BadCassette",
    "Builder",
    "Client",
    "Context",
    "DataMisfit",
    "DefinitionError",
    "Delta",
    "Document",
    "DocumentError",
    "Engine",
    "EngineClosed",
    "Entity",
    "FrozenInstance",
    "Graph",
    "GraphError",
    "Handlers",
    "InputChanged",
    "InputError",
    "InvalidOutput",
    "ManifestError",
    "MaskedResponse",
    "MissingJob",
    "MissingSecret",
    "NodeNotFound",
    "NodeSpec",
    "NodeStatus",
    "NodeView",
    "NotAllowed",
    "NotJson",
    "NotStored",
    "OtherRoot",
    "PermanentError",
    "Pipeline",
    "PipelineBusy",
    "PipelineError",
    "ReplayMismatch",
    "Retry",
    "RetryLater",
    "Run",
    "RunBusy",
    "RunCancelled",
    "RunConflict",
    "RunError",
    "RunFailed",
    "RunNotFound",
    "RunPaused",
    "RunStatus",
    "RunStillActive",
    "SchemaTooNew",
    "ServerError",
    "StateError",
    "StepwellError",
    "Stopped",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreReplaced",
    "TransientError",
    "Trigger",
    "TriggerError",
    "UnrecordedCall",
    "UnsafePath",
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
    home = _HOME.get(name, "errors")
    value = None if name.startswith("_") else getattr(import_module(f".{home}", __name__), name, None)
    # Whatever can be caught can be imported from here, also what is not listed above yet.
    if name not in _HOME and not (isinstance(value, type) and issubclass(value, Exception)):
        raise AttributeError(f"module 'stepwell' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
