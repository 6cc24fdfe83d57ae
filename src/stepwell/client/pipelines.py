"""Pipelines of a server: their status, scans and requests. Answers are JSON, as the API gives it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..base.clock import Duration
from ..engine.checking import checked_seconds
from ..errors import InputError, PipelineBusy, PipelineError
from .transport import Transport, path_of

LOOK_SECONDS = (0.05, 0.1, 0.2, 0.5)
"""Delays between polls of a scan; the last is repeated."""


def remote_pipelines(transport: Transport, names: Iterable[str] = ()) -> list[RemotePipeline]:
    """The pipelines with these names, or all that the server has."""
    served = {each["name"]: each for each in transport.get(path_of("pipelines"))}
    known = ", ".join(served) or "none: `stepwell serve -p` names them"
    chosen = list(names) or list(served)
    for name in chosen:
        if name not in served:
            raise InputError(f"the server {transport.url} has no pipeline {name!r}; there are: {known}")
    if not chosen:
        raise InputError(f"the server {transport.url} has no pipelines: `stepwell serve -p` names them")
    return [RemotePipeline(transport, name, served[name]["stages"]) for name in chosen]


class RemotePipeline:
    def __init__(self, transport: Transport, name: str, stages: Sequence[str]) -> None:
        self._transport = transport
        self.name = name
        self.stages = tuple(stages)

    def status(self, entity: str | None = None) -> dict[str, Any]:
        found: dict[str, Any] = self._transport.get(self._path("status"), entity=entity)
        del found["scan"]
        return found

    def states(self) -> Iterator[Mapping[str, Any]]:
        """Every state, including orphans."""
        return self._transport.pages(self._path("states"))

    def why(self, state: str) -> dict[str, Any]:
        return dict(self._transport.get(self._path("why"), state=state))

    def failures(self) -> dict[str, dict[str, Any]]:
        return dict(self._transport.get(self._path("failures"))["failures"])

    def plan(self, *targets: str, force: bool = False, after: Sequence[RemotePipeline] = ()) -> dict[str, Any]:
        """What a scan will do, `after` those of other pipelines."""
        body = {"targets": list(targets), "force": force, "dry_run": True, "after": [each.name for each in after]}
        return dict(self._transport.post(self._path("scan"), body, repeatable=True))

    def build(
        self,
        *targets: str,
        force: bool = False,
        existing: bool = False,
        progress: Callable[[Mapping[str, int]], None] | None = None,
        patience: Duration = 3_600.0,
    ) -> dict[str, Any]:
        """Ask for a scan, after waiting up to `patience` for another one; wait for its end and return the report."""
        body = {"targets": list(targets), "force": force, "existing": existing}
        until = time.monotonic() + checked_seconds("patience", patience)
        while True:
            try:
                scan = self._transport.post(self._path("scan"), body)
                break
            except PipelineBusy:
                if time.monotonic() >= until:
                    raise
                time.sleep(LOOK_SECONDS[-1])
        looks = 0
        while scan["running"]:
            time.sleep(LOOK_SECONDS[min(looks, len(LOOK_SECONDS) - 1)])
            looks += 1
            scan = self._transport.get(self._path("scans", scan["id"]))
            if progress is not None and scan["progress"] is not None:
                progress(scan["progress"])
        if scan["error"] is not None:
            raise PipelineError(f"the scan of {self.name} failed: {scan['error']}", pipeline=self.name)
        return dict(scan["report"])

    def change(self, verb: str, **asked: Any) -> list[str]:
        """Invalidate, accept, retry or clean states; which were changed."""
        return list(self._transport.post(self._path(verb), asked)["changed"])

    def _path(self, *parts: str) -> str:
        return path_of("pipelines", self.name, *parts)


def remote_links(transport: Transport, pipelines: Sequence[RemotePipeline]) -> tuple[list[dict[str, str]], str]:
    """Which stages read what others write, as data and as a flowchart."""
    found = transport.get(path_of("pipeline-links"), name=[each.name for each in pipelines])
    return found["links"], found["mermaid"]
