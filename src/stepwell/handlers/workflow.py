"""The handler `workflow`: a node that is performed by a run of a stored document."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ..base.performer import Saved
from .definition import Handler
from .strict import Strict


class WorkflowConfig(Strict):
    name: str = Field(description="a stored document, as `report` (its active version) or `report@3`")
    input: dict[str, Any] = Field({}, description="the input of its run")


workflow = Handler(
    "workflow",
    lambda ctx, config: Saved(config.name, config.input),
    WorkflowConfig,
    description="Run a stored document; the node gets its result: what its last node returned, or of several by id.",
    example={"name": "summarise", "input": {"url": "{{ fetch.result.url }}"}},
    takes_secrets=False,
)
