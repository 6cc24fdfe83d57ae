"""Ways to write a workflow, all of which end in a Graph: a class, or a Builder."""

from .builder import Builder, FanOut
from .classes.decorators import PREVIOUS, Declaration, step, task
from .classes.workflow import Workflow
from .code.bodies import Bodies, Body, Definition, Target, bodies_for, definition_of, load_target
from .code.registry import ANYTHING, Finder, NotRegistered, Registry
from .types.delta import Delta
from .types.state import StateType, check_unchanged

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
