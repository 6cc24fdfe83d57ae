"""A workflow that is replayed by workers in processes of their own. Their environment says what they do."""

from __future__ import annotations

import os
import threading
from typing import Annotated

from stepwell import Delta, Workflow, step
from stepwell.reducers import append

FACTOR = int(os.environ.get("REPLAYED_FACTOR", "2"))
HANGS = "REPLAYED_HANGS" in os.environ


class Shopping(Workflow):
    number: int

    class State:
        coins: Annotated[list[int], append]

    @step(side_effects="pure")
    def double(self) -> Delta[int]:
        if HANGS:
            threading.Event().wait()
        return Delta(self.number * FACTOR, coins=[self.number])

    @step(side_effects="pure")
    def half(self, double: int) -> Delta[float]:
        return Delta(double / 2, coins=[double])
