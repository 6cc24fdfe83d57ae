"""Ways to write a workflow, all of which end in a Graph: a class, or a Builder."""

from ..base.performer import Performer, Saved
from .builder import Builder
from .classes.decorators import PREVIOUS, step, task
from .classes.workflow import Workflow
from .code.bodies import Bodies, Definition, Target, bodies_for, definition_of, load_target
from .code.registry import ANYTHING, Finder, NotRegistered, Registry
from .types.delta import Delta
from .types.state import StateType, check_unchanged
