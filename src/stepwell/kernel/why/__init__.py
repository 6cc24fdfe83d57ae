"""Why a run or a node stands as it does: rows in, causes out. `words` has the text for them."""

from .answer import Why, explain
from .nodes import Wanted, wanted
from .paths import above
from .records import Cause, CauseKind, Facts, Known, Worker
from .runs import GROUPS, most_telling
