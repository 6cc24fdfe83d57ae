"""The shared vocabulary: statuses and their legal moves, rows, ops, receipts, queries."""

from .lanes import *
from .ops import *
from .queries import *
from .receipts import *
from .records import *
from .rows import *
from .status import *
from .suspects import *
from .versions import NameRow as NameRow
from .versions import VersionKind as VersionKind
from .versions import VersionRow as VersionRow
from .versions import VersionSaved as VersionSaved
from .versions import parted as parted
