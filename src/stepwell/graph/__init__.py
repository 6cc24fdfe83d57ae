"""What runs: nodes and the arrows between them, checked, ordered, immutable."""

from .check import Problem, check
from .draw import to_dot, to_mermaid
from .frozen import from_frozen, to_frozen
from .graph import Arranged, Graph
from .spec import (
    DEFAULT_QUEUE,
    MAX_NAME,
    NO_ARGS,
    Body,
    Kind,
    NodeSpec,
    OnLost,
    Retry,
    SideEffects,
)

__all__ = [
    "DEFAULT_QUEUE",
    "MAX_NAME",
    "NO_ARGS",
    "Arranged",
    "Body",
    "Graph",
    "Kind",
    "NodeSpec",
    "OnLost",
    "Problem",
    "Retry",
    "SideEffects",
    "check",
    "from_frozen",
    "to_dot",
    "to_frozen",
    "to_mermaid",
]
