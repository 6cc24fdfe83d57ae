"""One build. Where nothing has changed since the last scan, nothing else is loaded."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .report import BuildReport
from .verdict import list_everything, nothing_to_do

if TYPE_CHECKING:
    from ..definition import PipelineDefinition


def build_once(
    pipeline: PipelineDefinition,
    targets: Iterable[str] = (),
    *,
    force: bool = False,
    existing: bool = False,
    **options: Any,
) -> BuildReport:
    """Make what is missing or stale. `options` are those of the scanner."""
    given, began = tuple(targets), time.monotonic()
    listed = list_everything(pipeline)
    if not (given or force or existing) and (done := nothing_to_do(pipeline, listed)) is not None:
        return done._replace(seconds=time.monotonic() - began)
    from .build import Scanner

    with Scanner(pipeline, **options) as scanner:
        return scanner.scan(given, force=force, listed=listed, once=True, existing=existing)
