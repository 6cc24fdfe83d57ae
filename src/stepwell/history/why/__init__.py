"""Why a run or a node has its status: rows in, causes out. `words` has the texts."""

from .answer import Why, explain
from .nodes import Wanted, above, wanted
from .records import Cause, CauseKind, Facts, Known, Worker
from .runs import GROUPS, most_telling
