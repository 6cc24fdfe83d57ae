"""Why a run or a node has its status: rows in, causes out. `words` has the texts."""

from ...answers.causes import CauseKind
from .answer import Why, explain
from .nodes import RowsToRead, above, rows_to_read, skipped_by
from .records import ChildRun, Facts, KnownNode, WhyCause, Worker
from .runs import GROUPS, most_telling
