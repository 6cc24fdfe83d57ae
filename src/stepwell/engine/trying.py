"""One node of a document by itself: renders its config or runs its body, with outputs given for its parents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from ..base.codec import decode, encode
from ..base.ids import NodeId
from ..core.graph import Graph, NodeSpec
from ..define import ANYTHING, Bodies, Definition
from ..define.code.handled import RENDERED, HandledBody
from ..define.code.registry import ForData
from ..define.document import Document
from ..errors import InputError
from ..handlers import Handlers


def rendered(document: Document, node: str, outputs: Mapping[str, Any], input: Mapping[str, Any]) -> Any:
    """The config of a node as its body would get it; secrets stay references."""
    spec = document.graph.nodes[node]
    _check_outputs(spec.needs, outputs)
    body = (
        Bodies(handlers=document.handlers, finder=ANYTHING).unconditional(spec) if ":" not in (spec.job or "") else None
    )
    if not isinstance(body, HandledBody):  # a function: nothing is imported to show what it would get
        body = HandledBody.of_function(spec)
    context = SimpleNamespace(run_id="run", outcome={})
    body.render(document.checked_input(input), context, decode(encode({name: outputs[name] for name in spec.needs})))
    return context.outcome.get(RENDERED, dict(spec.args))


def tried(
    document: Document,
    node: str,
    outputs: Mapping[str, Any],
    input: Mapping[str, Any],
    handlers: Handlers,
    jobs: Iterable[str] = (),
) -> Any:
    """Run one node in a temporary store and return its output, or raise RunFailed."""
    from .engine import Engine
    from .starting import create_op

    spec = document.graph.nodes[node]
    parents = tuple(dict.fromkeys((*spec.depends_on, *spec.needs)))
    _check_outputs(parents, outputs)
    known = [NodeSpec(each, each, job=f"{__name__}:given", args={"output": outputs[each]}) for each in parents]
    graph = Graph([*known, spec._replace(depends_on=parents, when=None)])
    bodies = Bodies(jobs={f"{__name__}:given": given}, finder=ForData(jobs), handlers=handlers)
    definition = Definition(document.name, None, graph, document.checked_input(input), "fail_fast", None, bodies)
    with Engine("memory://", handlers=handlers, jobs=jobs) as engine:
        missing = bodies.missing([spec], is_data=True)
        if missing:
            raise missing[0]
        run_id = engine.parts.starting.start(definition, create_op(definition))
        return engine.wait(run_id).check().output(node)


def given(output: Any) -> Any:
    """The body of a parent whose output is given."""
    return output


def _check_outputs(needed: Iterable[NodeId], outputs: Mapping[str, Any]) -> None:
    missing = [name for name in needed if name not in outputs]
    if missing:
        example = ", ".join(f'"{name}": {{"result": ...}}' for name in missing[:3])
        raise InputError(f"expected what {', '.join(missing)} returned: --outputs FILE, a JSON object as {{{example}}}")
