"""Ways to write a workflow, all of which end in a Graph: a class, or a Builder."""

from .bodies import Bodies, Body, Definition, Target, bodies_for, definition_of, load_target
from .builder import Builder, FanOut
from .decorators import PREVIOUS, Declaration, step, task
from .workflow import Workflow

__all__ = [
    "PREVIOUS",
    "Bodies",
    "Body",
    "Builder",
    "Declaration",
    "Definition",
    "FanOut",
    "Target",
    "Workflow",
    "bodies_for",
    "definition_of",
    "load_target",
    "step",
    "task",
]
