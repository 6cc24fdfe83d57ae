"""Ways to write a workflow, all of which end in a Graph: a class, or a Builder."""

from .bodies import Bodies, Body, Definition, Target, bodies_for, definition_of, load_target
from .builder import Builder, FanOut
from .decorators import PREVIOUS, Declaration, step, task
from .registry import ANYTHING, Finder, NotRegistered, Registry
from .state import Delta, StateType, check_unchanged
from .workflow import Workflow

__all__ = [
    "ANYTHING",
    "PREVIOUS",
    "Bodies",
    "Body",
    "Builder",
    "Declaration",
    "Definition",
    "Delta",
    "FanOut",
    "Finder",
    "NotRegistered",
    "Registry",
    "StateType",
    "Target",
    "Workflow",
    "bodies_for",
    "check_unchanged",
    "definition_of",
    "load_target",
    "step",
    "task",
]
