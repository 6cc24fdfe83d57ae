"""Random graphs for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from stepwell.core.graph import Graph, NodeSpec, Retry

NAMES = st.text("abcdefgh_é0", min_size=1, max_size=4)
TEXT = st.characters(exclude_categories=["Cs"])
ARGS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(TEXT),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(TEXT), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def dags(draw: st.DrawFn, max_nodes: int = 12) -> list[NodeSpec]:
    """The nodes of an acyclic graph, declared in any order."""
    ids = draw(st.lists(NAMES, min_size=1, max_size=max_nodes, unique=True))
    specs = []
    for position, node in enumerate(ids):
        parents = draw(st.lists(st.sampled_from(ids[:position]), unique=True)) if position else []
        specs.append(NodeSpec(node, node, depends_on=tuple(parents)))
    return draw(st.permutations(specs))


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 8) -> Graph:
    """Graphs whose nodes have names, jobs, args, needs and every option."""
    specs = draw(dags(max_nodes))
    above = Graph(specs)
    return Graph([draw(_with_options(spec, _ancestors(above, spec.id))) for spec in specs])


def _ancestors(graph: Graph, node: str) -> list[str]:
    found: dict[str, None] = {}
    waiting = list(graph.nodes[node].depends_on)
    while waiting:
        each = waiting.pop()
        if each not in found:
            found[each] = None
            waiting += graph.nodes[each].depends_on
    return sorted(found)


@st.composite
def _with_options(draw: st.DrawFn, spec: NodeSpec, ancestors: list[str]) -> NodeSpec:
    delays = st.integers(0, 9) | st.floats(0, 9)
    exceptions = st.lists(st.sampled_from([OSError, "shop.Busy", ConnectionError]), unique=True).map(tuple)
    on_lost = draw(st.sampled_from(["rerun", "interrupt"]))
    retries = st.builds(Retry.stored, st.integers(1, 9), delays, delays, exceptions)
    if on_lost == "rerun":
        retries |= st.builds(Retry.stored, st.integers(1, 9), delays, delays, st.none())
    return spec._replace(
        name=draw(
            st.just(spec.id) | st.text(TEXT, min_size=1).filter(lambda text: bool(text.strip()) and text.isprintable())
        ),
        job=draw(st.sampled_from([None, "shop.jobs:charge", "shop:Mail.send"])),
        args=draw(st.dictionaries(st.text(TEXT), ARGS, max_size=3)),
        needs=tuple(draw(st.lists(st.sampled_from(ancestors), unique=True))) if ancestors else (),
        kind=draw(st.sampled_from(["step", "task"])),
        retry=draw(st.none() | retries),
        timeout=draw(st.none() | st.floats(0, 1e8, exclude_min=True)),
        on_lost=on_lost,
        body=draw(st.sampled_from(["thread", "loop", "process"])),
        queue=draw(st.sampled_from(["default", "slow", "größte"])),
        side_effects=draw(st.sampled_from(["pure", "recordable", "opaque"])),
    )
