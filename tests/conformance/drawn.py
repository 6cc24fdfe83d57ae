"""What the random batches are made of."""

from hypothesis import strategies as st

from stepwell.base.ids import GateToken, RunId, WorkerId
from stepwell.core.graph import Graph, NodeSpec
from stepwell.core.model import CONDITION, HEALED_LATE, PARENTS_SKIPPED, SETTLEMENTS, AttemptStatus, NodeStatus
from tests.conformance.ops import lane

RUNS = tuple(RunId(f"run-{i}") for i in range(5))
FORKS = tuple(RunId(f"fork-{i}") for i in range(3))
CHILDREN = tuple(RunId(f"child-{i}") for i in range(4))
WORKERS = tuple(WorkerId(f"worker-{i}") for i in range(3))
TOKENS = tuple(GateToken(f"token-{i}") for i in range(2))
PURPOSES = ("failed", "cancel", "retry", "pause")
LANES = tuple(
    lane(text)
    for text in ("default/thread", "default/thread!", "gpu/loop", "default/thread?", "gpu/loop?", "elsewhere/thread")
)
PAYLOADS = {
    "none": None,
    "null": b"null",
    "empty": b"",
    "small": b'{"a":1}',
    "large": b'"' + b"x" * 20_000 + b'"',
    "just large": b"y" * 16_384,
    "not json": b"\x00",
    "error": b'{"type":"KeyError"}',
    "other error": b'{"type":"OSError"}',
}
SETTLED = tuple((status, node) for status, nodes in SETTLEMENTS.items() for node in sorted(nodes))
REASONS = (None, CONDITION, PARENTS_SKIPPED, HEALED_LATE)
ILLEGAL = ((AttemptStatus.COMPLETED, NodeStatus.FAILED), (AttemptStatus.SUPERSEDED, NodeStatus.READY))
RUBBISH = ("", "rubbish", "c.0", "00001.00", "00001.65536", "00002.-1", "00001.999999999999999999999")
UNSTARTED = (NodeStatus.PENDING, NodeStatus.READY, NodeStatus.WAITING)

number = st.integers(0, 1_000)
"""Chooses something, whatever is there by then: rules take it modulo the number of choices."""


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A small graph of any shape, often a chain, with careful nodes, two queues and outputs that bodies ask for."""
    specs: list[NodeSpec] = []
    chain = draw(st.booleans())
    for i in range(draw(st.integers(1, 7))):
        parents = set() if not i else {i - 1} if chain else draw(st.sets(st.integers(0, i - 1), max_size=3))
        names = tuple(specs[parent].id for parent in sorted(parents))
        needs = tuple(name for name in names if draw(st.booleans()))
        kind = draw(st.sampled_from(({}, {}, {"on_lost": "interrupt"}, {"queue": "gpu", "body": "loop"})))
        specs.append(NodeSpec(f"n{i}", f"n{i}", depends_on=names, needs=needs, **kind))
    return Graph(specs)
