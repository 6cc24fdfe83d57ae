"""What is run in a simulated world: a graph, how its bodies behave, what its users ask, and what must come out."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from functools import cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple

from stepwell.base.ids import NodeId
from stepwell.core.graph import Graph, NodeSpec, Retry
from stepwell.core.model import OnFailure
from tests.conformance.ops import CHUNK


class Behaviour(NamedTuple):
    """How the body of a node behaves."""

    fails: int = 0
    """It fails this many times before it succeeds, counting every time it really began."""
    seconds: float = 0.0
    obeys: bool = True
    """Asked to stop, it does."""
    unstorable: int = 0
    """After it has failed, this many of its results cannot be stored, nor the first line of these attempts."""
    kills: int = 0
    """The first of its bodies, so many of them, end the process they run in."""


CALM = Behaviour()


class Workload(NamedTuple):
    name: str
    graph: Graph
    behaviours: Mapping[str, Behaviour]
    on_failure: OnFailure = "fail_fast"
    runs: int = 1
    asks: tuple[str, ...] = ()
    """What a user asks of the first run at some moments; see `asking`."""
    timeout: float | None = None
    unclaimable: int = 0
    """How many claims that name the first run cannot be applied."""
    later: Graph | None = None
    """Another version of the graph, to heal to. What both have computes the same, whichever of them it runs in."""
    chunk: int = CHUNK
    """How many rows are rewritten at once."""
    priorities: tuple[int, ...] = (0,)
    """Of the runs, in turn."""
    queues: tuple[str, ...] = ()
    """Each worker serves one of them, in turn, if there are workers for all of them."""
    children: Mapping[str, Graph] = MappingProxyType({})
    """The graphs of the runs to which the bodies of these nodes hand them over."""

    def behaviour(self, node: str) -> Behaviour:
        return self.behaviours.get(node, CALM)


def speaks(index: int) -> bool:
    """Whether the body of a node logs something."""
    return index % 2 == 1


def result_of(node: str, inputs: Mapping[str, Any]) -> str:
    """What a body returns: a function of its node and of what its parents returned, and of nothing else."""
    return sha256(repr((node, sorted(inputs.items()))).encode()).hexdigest()[:12]


def holds(spec: NodeSpec, inputs: Mapping[str, Any]) -> bool:
    """Whether the condition of a node holds: a function of what its parents returned, and of nothing else."""
    if spec.when == "sometimes":
        return int(result_of(f"{spec.id}?", inputs), 16) % 2 == 0
    return spec.when != "never"


def expected_outputs(
    graph: Graph,
    late: Collection[str] = (),
    decided: Collection[str] = (),
    children: Mapping[str, Graph] = MappingProxyType({}),
) -> dict[str, Any]:
    """The outputs of a run without any fault, computed without the engine. `late`: nodes that a heal added too late;
    `decided`: nodes that were skipped before it; `children`: of the workload."""
    outputs: dict[str, Any] = {}
    skipped: set[str] = set()
    for spec in sorted(graph, key=lambda spec: graph.ranks[graph.index[spec.id]]):
        inputs = {parent: outputs[parent] for parent in spec.needs if parent in outputs}
        gone = [parent in skipped for parent in spec.depends_on]
        without_parents = bool(gone) and (any(gone) if spec.join == "all" else all(gone))
        if spec.id in late:
            continue
        if without_parents or spec.id in decided or not holds(spec, inputs):
            skipped.add(spec.id)
        elif spec.id in children:
            below = children[spec.id]
            found = expected_outputs(below, children=children)
            last = [each.id for each in below if not below.dependents(each.id)]
            outputs[spec.id] = found.get(last[0]) if len(last) == 1 else {each: found.get(each) for each in last}
        else:
            outputs[spec.id] = result_of(spec.id, inputs)
    return outputs


def _graph(edges: Mapping[str, str], **options: dict[str, Any]) -> Graph:
    """`{"b": "a", "d": "b c"}`: b after a, d after b and c. Every body takes the outputs of its parents."""
    specs = []
    for name, parents in edges.items():
        own = tuple(NodeId(parent) for parent in parents.split())
        specs.append(NodeSpec(NodeId(name), name, own, job="sim:body", **({"needs": own} | options.get(name, {}))))
    return Graph(specs)


AGAIN = Retry(4, base_delay=0.05, max_delay=0.4)


@cache
def shapes() -> dict[str, Workload]:
    """Small workloads, one for each thing that can go wrong.

    All pairs of faults are tried in each of them, and their number grows with the square of its commits: what needs many
    commits belongs in `_longer`.
    """
    chain = _graph({"a": "", "b": "a", "c": "b"})
    diamond = _graph({"a": "", "b": "a", "c": "a", "d": "b c"})
    fan_in = _graph({"a": "", "b": "", "c": "", "d": "a b c"})
    fan_out = _graph({"a": "", **dict.fromkeys("bcdef", "a"), "g": "b c d e f"})
    retried = _graph({"a": "", "b": "a", "c": "b"}, b={"retry": AGAIN})
    timed = _graph({"a": "", "b": "a", "c": "b"}, b={"timeout": 0.2, "retry": Retry(8, base_delay=0.01, max_delay=0.1)})
    once = _graph({"a": "", "b": "a", "c": "b"}, b={"on_lost": "interrupt"})
    pair = _graph({"a": "", "b": "", "c": "a b"})
    poisoned = _graph({"a": "", "b": "", "c": "a b"}, b={"retry": AGAIN})
    queued = _graph({"a": "", "b": "a", "c": "b"}, b={"queue": "gpu"})
    first = _graph({"a": "", "b": "a", "c": "b"})
    deployed = _graph({"a": "", "x": "a", "b": "a x", "d": "b"}, b={"needs": (NodeId("a"),)})
    side_by_side, one_after_the_other = _graph({"a": "", "b": ""}), _graph({"a": "", "b": "a"}, b={"needs": ()})
    branched = _graph({"a": "", "b": "a", "c": "b", "d": "b a"}, b={"when": "never"})
    joined = _graph({"a": "", "b": "a", "c": "a", "d": "b c", "e": "d c"}, b={"when": "never"}, d={"join": "all"})
    choosing = _graph({"a": "", "b": "a", "c": "b"}, b={"when": "never"})
    deployed_beside = _graph(
        {"a": "", "b": "a", "x": "a", "y": "b", "c": "b x"}, b={"when": "never"}, c={"needs": (NodeId("b"),)}
    )
    one_below, two_below = _graph({"k": ""}), _graph({"k": "", "l": ""})
    careful_child = _graph({"a": "", "b": "a", "c": "b"}, b={"on_lost": "interrupt"})
    both_slow = {"a": Behaviour(seconds=0.2), "b": Behaviour(seconds=0.2)}
    slow = {"a": Behaviour(seconds=0.05)}
    failing, stubborn = {"b": Behaviour(fails=1)}, Behaviour(seconds=1, obeys=False)
    return {
        workload.name: workload
        for workload in (
            Workload("chain", chain, {}),
            Workload("diamond", diamond, {}),
            Workload("fan-in", fan_in, {}),
            Workload("fan-out", fan_out, {}),
            Workload("retry", retried, failing),
            Workload("timeout", timed, {"b": Behaviour(seconds=0.15)}),
            Workload("run retry", diamond, failing),
            Workload("finish", diamond, failing, "finish"),
            Workload("cancel race", diamond, slow, asks=("cancel",)),
            Workload("retry race", pair, {"a": Behaviour(fails=1), "b": stubborn}),
            Workload("at most once", once, {}),
            Workload("two runs", chain, {}, runs=2),
            Workload("queues", queued, {}, queues=("default", "gpu")),
            Workload("poison batch", poisoned, {"b": Behaviour(unstorable=1)}),
            Workload("pause", pair, slow, asks=("pause",)),
            Workload("pause on failure", pair, {"a": Behaviour(fails=1)}, "pause"),
            Workload("cancel paused", pair, slow, asks=("pause", "cancel")),
            Workload("reattempt", _graph({"a": "", "b": "a"}), {}, asks=("reattempt",)),
            Workload("cascade", chain, {}, asks=("late cascade",), chunk=2),
            Workload("fork", _graph({"a": "", "b": "a"}), {}, asks=("late fork",)),
            Workload("condition", branched, {}),
            Workload("condition and join", joined, {"c": Behaviour(fails=1)}, "finish"),
            Workload("condition again", choosing, {}, asks=("late cascade",)),
            Workload("fork below a condition", choosing, {}, asks=("late fork",)),
            Workload("heal beside a condition", choosing, {}, asks=("late heal",), later=deployed_beside),
            Workload("child", chain, {}, children={"b": one_below}),
            Workload("child at most once", careful_child, {}, children={"b": one_below}),
            Workload("child fails", pair, {"k": Behaviour(fails=1)}, children={"b": one_below}),
            Workload(
                "child beside a failure", pair, {"a": Behaviour(fails=1), "k": slow["a"]}, children={"b": two_below}
            ),
            Workload("cancel child", pair, {"k": slow["a"]}, asks=("cancel",), children={"b": one_below}),
            Workload("pause child", pair, {"b": slow["a"], "k": slow["a"]}, asks=("pause",), children={"b": one_below}),
            Workload(
                "reattempt child", _graph({"a": "", "b": "a"}), {}, asks=("reattempt",), children={"b": one_below}
            ),
            Workload("heal", first, {"b": Behaviour(seconds=0.05)}, asks=("heal",), later=deployed),
            Workload("heal late", first, {"c": Behaviour(fails=1, seconds=0.5)}, asks=("late heal",), later=deployed),
            Workload("heal between", side_by_side, both_slow, asks=("heal",), later=one_after_the_other),
            Workload("heal in doubt", first, {"c": Behaviour(seconds=0.5)}, asks=("heal carefully",), later=deployed),
        )
    }


@cache
def _longer() -> dict[str, Workload]:
    """Some shapes with more failures, for random worlds: they need too many commits for all pairs of faults."""
    twice, stubborn = Behaviour(fails=2), Behaviour(fails=2, seconds=2, obeys=False)
    race = shapes()["retry race"]._replace(graph=shapes()["fan-in"].graph, behaviours={"a": twice, "b": stubborn})
    failing = {name: shapes()[name]._replace(behaviours={"b": twice}) for name in ("retry", "run retry", "finish")}
    back = shapes()["heal"]._replace(asks=("heal", "heal", "pause", "heal"), behaviours={"b": twice})
    forks = Workload(
        "forks", shapes()["diamond"].graph, {"b": twice}, asks=("fork", "late fork", "reattempt", "late fork")
    )
    healed = shapes()["heal"]._replace(name="fork healed", asks=("heal", "late fork", "early fork", "heal"))
    loaded = _graph({**dict.fromkeys("abcdef", ""), "g": "a b c d e f"})
    busy = {"a": Behaviour(kills=3), **{name: Behaviour(seconds=0.3) for name in "bcdef"}}
    unclaimable = Workload("unclaimable", shapes()["chain"].graph, {"b": twice}, runs=3, unclaimable=12)
    poisoned = {
        "poison at most once": shapes()["at most once"]._replace(behaviours={"b": Behaviour(unstorable=1)}),
        "poison fan-out": shapes()["fan-out"]._replace(behaviours={name: Behaviour(unstorable=1) for name in "bdf"}),
    }
    cascades = Workload(
        "cascades",
        shapes()["diamond"].graph,
        {"b": twice, "c": Behaviour(seconds=0.05)},
        "pause",
        asks=("cascade", "late cascade", "reattempt any", "late fork", "late cascade"),
        chunk=1,
    )
    never_stops = Behaviour(seconds=10, obeys=False)
    stubborn_cancel = Workload("cancel stubborn", shapes()["fan-in"].graph, {"b": never_stops}, asks=("cancel",))
    careful = {node: {"on_lost": "interrupt"} for node in "abcd"}
    all_once = Workload("all at most once", _graph({"a": "", "b": "", "c": "a b", "d": "c"}, **careful), {})
    retried = {"b": {"retry": AGAIN, "needs": ()}}
    held_back = Workload(
        "heal above a retry",
        _graph({"a": "", "b": ""}, **retried),
        {"a": Behaviour(seconds=0.5), "b": twice},
        asks=("heal",),
        later=_graph({"a": "", "b": "a"}, **retried),
    )
    grandchild = Workload(
        "grandchild",
        shapes()["diamond"].graph,
        {"m": Behaviour(fails=1), "l": Behaviour(seconds=0.05)},
        asks=("pause", "late cancel"),
        children={"b": _graph({"k": "", "l": "k"}), "c": _graph({"n": ""}), "k": _graph({"m": ""})},
    )
    dropped = shapes()["heal"]._replace(
        name="child dropped", behaviours={"k": Behaviour(seconds=0.3)}, children={"c": _graph({"k": ""})}
    )
    children = {
        "grandchild": grandchild,
        "child dropped": dropped,
        "resume child": shapes()["pause child"]._replace(
            name="resume child", behaviours={}, asks=("pause", "early resume", "pause", "early resume")
        ),
        "child pauses": grandchild._replace(name="child pauses", on_failure="pause"),
        "child finishes": grandchild._replace(name="child finishes", on_failure="finish"),
        "child cascade": shapes()["cascade"]._replace(name="child cascade", children={"b": _graph({"k": ""})}),
        "child forks": shapes()["fork"]._replace(
            name="child forks", asks=("fork", "late fork", "late cascade"), children={"b": _graph({"k": ""})}
        ),
    }
    return {
        **failing,
        **children,
        **poisoned,
        "all at most once": all_once,
        "cancel stubborn": stubborn_cancel,
        "heal above a retry": held_back,
        "retry race": race,
        "heal back": back,
        "forks": forks,
        "fork healed": healed,
        "unclaimable": unclaimable,
        "suspect under load": Workload("suspect under load", loaded, busy, runs=3, priorities=(0, 5, 5)),
        "priorities": shapes()["fan-out"]._replace(name="priorities", runs=4, priorities=(0, 9, -1, 9)),
        "cascades": cascades,
    }


def random_workload(rng: random.Random) -> Workload:
    """One of the shapes, or a random graph with random options and behaviours."""
    if rng.random() < 0.5:
        return rng.choice([*(shapes() | _longer()).values()])
    names = [f"n{number}" for number in range(rng.randint(2, 8))]
    edges = {
        name: " ".join(parent for parent in names[:place] if rng.random() < 0.4) for place, name in enumerate(names)
    }
    options: dict[str, dict[str, Any]] = {name: {} for name in names}
    timeout = rng.choice([None, None, None, 2.0])
    longest = 6.0 if timeout is None else 0.05
    behaviours = {}
    for name in names:
        if rng.random() < 0.25:
            options[name]["retry"] = Retry(rng.randint(2, 4), base_delay=0.02, max_delay=0.2)
        elif rng.random() < 0.15:
            options[name]["on_lost"] = "interrupt"
        if rng.random() < 0.2:
            options[name]["body"] = "loop"
        if rng.random() < 0.2:
            options[name]["when"] = rng.choice(["never", "sometimes", "always"])
        if rng.random() < 0.15:
            options[name]["join"] = "all"
        if rng.random() < 0.1:
            options[name]["queue"] = "gpu"
        behaviours[name] = Behaviour(
            fails=rng.choice([0, 0, 0, 1, 2]),
            seconds=rng.choice([0, 0, 0, 0, 0, 0.05, 0.05, longest]),
            obeys=rng.random() < 0.8,
            unstorable=rng.choice([0, 0, 0, 0, 0, 0, 0, 1]),
            kills=rng.choice([0] * 15 + [1, 3]) if "on_lost" not in options[name] else 0,
        )
    graph = _graph(edges, **options)
    children = {name: _random_child(rng, name, behaviours) for name in names if rng.random() < 0.15}
    later = _another_version(rng, graph) if rng.random() < 0.4 else None
    verbs = ["cancel", "cancel", "retry", "pause", "resume", "reattempt", "cascade", "fork"] + (
        ["heal", "heal carefully"] if later else []
    )
    return Workload(
        "random",
        graph,
        behaviours,
        rng.choice(["fail_fast", "finish", "pause"]),
        runs=rng.choice([1, 1, 2, 3]),
        asks=tuple(
            rng.choice(["", "late ", "early "]) + rng.choice(verbs) for _ in range(rng.choice([0, 0, 1, 1, 2, 4]))
        ),
        timeout=timeout,
        unclaimable=rng.choice([0, 0, 0, 0, 0, 10]),
        later=later,
        chunk=rng.choice([1, 2, CHUNK]),
        priorities=rng.choice([(0,), (0, 5, -5)]),
        queues=rng.choice([(), ("default", "gpu")]),
        children=children,
    )


def _random_child(rng: random.Random, name: str, behaviours: dict[str, Behaviour]) -> Graph:
    """A small graph for the run that performs a node."""
    names = [f"{name}_{letter}" for letter in "kl"[: rng.choice([1, 1, 2])]]
    for each in names:
        behaviours[each] = Behaviour(
            fails=rng.choice([0, 0, 0, 1]), seconds=rng.choice([0, 0, 0.05]), obeys=rng.random() < 0.8
        )
    return _graph({each: names[0] if place and rng.random() < 0.5 else "" for place, each in enumerate(names)})


def _another_version(rng: random.Random, graph: Graph) -> Graph:
    """Some nodes that nobody stands on are gone, others have joined, anywhere. What a body needs stays the same."""
    kept = [spec for spec in graph if graph.dependents(spec.id) or rng.random() < 0.6] or list(graph)
    new: dict[NodeId, NodeSpec] = {}
    for spec in kept:
        own = spec.depends_on
        if rng.random() < 0.4:
            joined = NodeId(f"x{len(new)}")
            new[joined] = NodeSpec(joined, joined, own, job="sim:body", needs=own)
            own = (*own, joined) if rng.random() < 0.7 else own
        new[spec.id] = spec._replace(depends_on=own)
    return Graph(list(new.values()))
