"""A pipeline whose stages Celery workers run."""

from __future__ import annotations

import os
from pathlib import Path

from stepwell import Pipeline


def make(root: str | Path) -> Pipeline:
    copies = Pipeline("copies", root=root, home=__name__)

    @copies.stage(input="in/{name}.txt", output="upper/{name}.txt", version="1")
    def upper(text: str) -> str:
        return text.upper()

    @copies.stage(input="upper/{name}.txt", output="pids/{name}", version="1")
    async def pids(text: str) -> str:
        return f"{text} {os.getpid()}"

    return copies


if "STATES_ROOT" in os.environ:
    copies = make(os.environ["STATES_ROOT"])
