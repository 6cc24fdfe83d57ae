"""All planted bugs: each changes one rule of the kernel, the store or the runner, and the simulator must notice it.

They are patches that live here and nowhere else; the shipped code has no switches for them.
"""

from tests.simulation.simulate import branching_mutants, children_mutants, control_mutants, core_mutants
from tests.simulation.simulate.planted import MUTANTS

__all__ = ["MUTANTS", "branching_mutants", "children_mutants", "control_mutants", "core_mutants"]
