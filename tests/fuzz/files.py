"""The files of a pipeline: manifests and links in the places where a build reads and writes."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager, suppress
from pathlib import Path
from typing import Any

from stepwell import Pipeline
from stepwell.errors import StepwellError


@contextmanager
def built_pipeline() -> Iterator[tuple[Path, Pipeline]]:
    """In a directory of its own, where the runs of its builds are kept, too."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        root = Path(folder) / "root"
        (root / "in").mkdir(parents=True)
        (root / "in/a.txt").write_text("one", "utf-8")
        pipeline = Pipeline("fuzzed", root=root)

        @pipeline.stage(input="in/{name}.txt", output="out/{name}.txt", version="1")
        def upper(entity: Any, text: str) -> str:
            return text.upper()

        yield root, pipeline


def read_manifest(given: Any) -> None:
    with built_pipeline() as (root, pipeline):
        pipeline.build()
        for name in (".manifest.json", ".manifest.log"):
            (root / "out" / name).write_text(
                given if isinstance(given, str) else json.dumps(given), "utf-8", "backslashreplace"
            )
        with suppress(StepwellError):
            pipeline.status()
        with suppress(StepwellError):
            pipeline.build()


def follow_link(given: list[str]) -> None:
    """A build writes nothing outside of its root, whatever link or pipe stands where it writes and reads."""
    name, kind = given
    with built_pipeline() as (root, pipeline):
        outside = root.parent / "outside"
        outside.mkdir()
        (outside / "file").write_text("untouched", "utf-8")
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if kind == "pipe":
            os.mkfifo(place)
        else:
            place.symlink_to({"file": outside / "file", "folder": outside, "new": outside / "new"}[kind])
        with suppress(StepwellError, OSError):
            pipeline.build()
        with suppress(StepwellError, OSError):
            pipeline.status()
        assert (outside / "file").read_text("utf-8") == "untouched"
        assert [each.name for each in outside.iterdir()] == ["file"], "something was written outside of the root"


PLACES = [
    *(
        ".stepwell",
        ".stepwell/fuzzed.lease",
        ".stepwell/failures.json",
        ".stepwell/lock",
        ".stepwell/cache",
        ".stepwell/triggers.json",
    ),
    *("out", "out/a.txt", "out/.manifest.json", "out/.manifest.log", "out/.stepwell-a.txt", "out/.manifest.json.tmp"),
]
KINDS = ["file", "folder", "new", "pipe"]
