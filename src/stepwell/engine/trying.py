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
    body = _body(document, spec)
    read = _read_by_templates(spec, body)
    _check_outputs(read, outputs)
    context = SimpleNamespace(run_id="run", outcome={})
    body.render(document.checked_input(input), context, decode(encode({name: outputs[name] for name in read})))
    return context.outcome.get(RENDERED, dict(spec.args))


def _body(document: Document, spec: NodeSpec) -> HandledBody:
    if ":" not in (spec.job or ""):
        body = Bodies(handlers=document.handlers, finder=ANYTHING).unconditional(spec)
        if isinstance(body, HandledBody):
            return body
    return HandledBody.of_function(spec)  # nothing is imported to show what it would get


def _read_by_templates(spec: NodeSpec, body: HandledBody) -> tuple[NodeId, ...]:
    """What the config needs: `needs` has what the condition of the node reads, too."""
    return tuple(name for name in spec.needs if name in body.reads)


def tried(
    document: Document,
    node: str,
    outputs: Mapping[str, Any],
    input: Mapping[str, Any],
    handlers: Handlers,
    jobs: Iterable[str] = (),
) -> Any:
    """Run one node in a temporary store, without its condition, and return its output, or raise RunFailed."""
    from .engine import Engine
    from .starting import create_op

    spec = document.graph.nodes[node]
    read = _read_by_templates(spec, _body(document, spec))
    only_condition = set(spec.needs).difference(read)
    needed = tuple(dict.fromkeys((*(each for each in spec.depends_on if each not in only_condition), *read)))
    _check_outputs(needed, outputs)
    parents = (*needed, *(each for each in spec.depends_on if each in only_condition and each in outputs))
    known = [NodeSpec(each, each, job=f"{__name__}:given", args={"output": outputs[each]}) for each in parents]
    graph = Graph([*known, spec._replace(depends_on=parents, needs=read, when=None)])
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
