"""Who does it: the engine, the local runner and what they are made of."""

from .context import Context
from .engine import Engine
from .run import AttemptView, NodeError, NodeView, Run

__all__ = ["AttemptView", "Context", "Engine", "NodeError", "NodeView", "Run"]
