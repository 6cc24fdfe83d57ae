"""A program that builds a pipeline and may be killed on the way: `crashing.py ROOT DB [FAULT]`.

FAULT is `name:number`: the process kills itself the so-manieth time the named step is reached.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from stepwell import Pipeline

ROOT = Path(os.environ["CRASH_ROOT"])
crashing = Pipeline("crashing", root=ROOT)


def note(line: str) -> None:
    """Into the ledger, outside of everything that is tested."""
    descriptor = os.open(ROOT.parent / "ledger", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


@crashing.stage(input="in/{x}.txt", output="up/{x}.txt", version="1")
def up(text: str, entity) -> str:
    note(f"up {entity}")
    return text.upper()


@crashing.stage(input="up/{x}.txt", output="dir/{x}/", version="1")
def folder(text: str, entity, out: Path) -> None:
    note(f"folder {entity}")
    (out / "a").write_text(text)
    (out / "b").write_text(text * 2)


@crashing.stage(input="up/{x}.txt", output="parts/{x}/{n}.txt", version="1")
def parts(text: str, entity) -> dict[int, str]:
    note(f"parts {entity}")
    return dict(enumerate(text.split()))


STEPS = ("open", "write", "fsync", "syncfs", "rename", "replace", "mkdir", "unlink", "commit")


def plant(fault: str) -> None:
    """Have the process die just before the so-manieth call of a kind."""
    name, _, number = fault.partition(":")
    left = int(number)

    def counted(call):
        def perform(*args, **options):
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **options)

        return perform

    if name == "syncfs":
        from stepwell.pipeline.states.files import publishing, syncing

        syncing.sync_files = publishing.sync_files = counted(syncing.sync_files)
    elif name == "commit":
        from stepwell.stores.sqlite.store import SqliteStore

        SqliteStore.commit = counted(SqliteStore.commit)  # type: ignore[method-assign]
    else:
        setattr(os, name, counted(getattr(os, name)))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        plant(sys.argv[2])
    from crashing import crashing as imported

    report = imported.build(engine=f"sqlite:///{sys.argv[1]}")
    print(len(report.produced), len(report.failed), len(report.left))
