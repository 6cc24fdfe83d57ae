"""Where the examples keep their runs when they are run as scripts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def database() -> Iterator[Path]:
    """The SQLite file named on the command line, which is kept, or a temporary one.

    Every example starts its runs under fixed ids. So, with a file of your own, the same command after a crash is the
    same runs, and goes on with them.
    """
    if len(sys.argv) > 1:
        yield Path(sys.argv[1]).resolve()
        return
    with TemporaryDirectory(prefix="stepwell-") as folder:
        yield Path(folder) / "runs.db"
