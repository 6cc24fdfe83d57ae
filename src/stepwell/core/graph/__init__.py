"""What runs: nodes and the arrows between them, checked, ordered, immutable."""

from .check import GraphProblem, check
from .draw import to_dot, to_mermaid
from .frozen import from_frozen, to_frozen
from .graph import Arranged, Graph
from .outline import Outline
from .retry import *
from .spec import *
