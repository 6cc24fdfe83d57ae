"""What runs: nodes and the arrows between them, checked, ordered, immutable."""

from .check import Problem, check
from .draw import to_dot, to_mermaid
from .graph import Arranged, Graph
from .spec import DEFAULT_QUEUE, NO_ARGS, Body, Kind, NodeSpec, OnLost, Retry, lane_name, suspect_lane

__all__ = [
    "DEFAULT_QUEUE",
    "NO_ARGS",
    "Arranged",
    "Body",
    "Graph",
    "Kind",
    "NodeSpec",
    "OnLost",
    "Problem",
    "Retry",
    "check",
    "lane_name",
    "suspect_lane",
    "to_dot",
    "to_mermaid",
]
