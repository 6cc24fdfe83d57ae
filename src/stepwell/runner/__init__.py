"""Who does it: the engine, the local runner and what they are made of."""

from .bodies.context import Context
from .engine import Engine
from .run import AttemptView, LogRecord, NodeError, NodeView, Run

__all__ = ["AttemptView", "Context", "Engine", "LogRecord", "NodeError", "NodeView", "Run"]
