"""Jobs of nodes: functions of a module, or their addresses."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from ...base.words import shown
from ...errors import DefinitionError
from ..types.signatures import yields
from .address import address_of, is_address, loaded


class NamedJob(NamedTuple):
    """The address of a job, and its function if that was given."""

    address: str
    function: Callable[..., Any] | None
    is_async: bool

    @property
    def short_name(self) -> str:
        return self.address.rpartition(":")[2].rpartition(".")[2]


def refuse_workflow(job: object) -> None:
    """A node runs a function; a DefinitionError if it is given a workflow instead."""
    if hasattr(job, "workflow_name") or hasattr(job, "workflow_graph"):  # Workflow is defined above this module
        name = getattr(job, "__name__", None) or shown(job)
        raise DefinitionError(
            f"job={name}: it is a workflow, and a node runs a function. Start the workflow as a run of its own: "
            f"`engine.start(...)`, or with a trigger `run_finished`"
        )


def named_job(job: Callable[..., Any] | str) -> NamedJob:
    """The address of a job. Of a given address its form is checked, and what it leads to if that is loaded: writing a
    workflow imports nothing.
    """
    if isinstance(job, str):
        if not is_address(job):
            raise DefinitionError(f"job={shown(job)}: expected package.module:function, or the function itself")
        refuse_workflow(loaded(job))
        return NamedJob(job, None, False)
    refuse_workflow(job)
    if not callable(job) or not hasattr(job, "__qualname__") or not isinstance(getattr(job, "__module__", None), str):
        raise DefinitionError(
            f"job={shown(job)}: expected a function of a module, or its address package.module:function; "
            f"fixed arguments go into args="
        )
    address = address_of(job)
    if not is_address(address):  # lambda, or defined inside a function
        raise DefinitionError(
            f"job={job.__qualname__}: only its name is stored, and no other process finds a lambda or a function "
            f"inside a function by its name; move it to the top level of its module and pass what it needs as args="
        )
    known = loaded(address)
    if known is not None and known is not job:
        raise DefinitionError(
            f"job={shown(job)}: its name {address} leads to something else ({known!r}), which another process would run "
            f"instead; give the function that has this name"
        )
    if yields(job):
        raise DefinitionError(f"job={address}: it yields, but a job returns its result once: return a list instead")
    return NamedJob(address, job, inspect.iscoroutinefunction(job))
