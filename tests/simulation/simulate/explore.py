"""Explore worlds: many seeds, every fault at every call, and the shortest story of a failure."""

from __future__ import annotations

import itertools
import logging
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from stepwell.core.model import StoreLimits
from tests.simulation.simulate.before import Violation
from tests.simulation.simulate.faults import CALL_FAULTS, NO_FAULTS, Fault, random_swarm
from tests.simulation.simulate.workload import Workload, random_workload, shapes
from tests.simulation.simulate.world import World

CALM = NO_FAULTS._replace(steps=400)
"""No random fault: only those that are planned."""


class Life(NamedTuple):
    """How one seed went."""

    seed: int
    problem: str | None
    events: int
    virtual_seconds: float
    trace_hash: int
    seen: Counter[str]
    calls: int
    hits: int
    """How many of the planned faults happened."""


def live(seed: int) -> Life:
    """One random world."""
    return _life(_random_world(seed), seed)


def story(seed: int) -> list[str]:
    """The events of a seed, one line each, ending with what went wrong if anything did."""
    world = _random_world(seed, tell=True)
    life = _life(world, seed)
    assert world.trace is not None
    head = [f"seed {seed}: {world.workload.name}, {world.workload.graph!r}", f"{world.swarm}"]
    return [*head, *world.trace, life.problem or "all is well"]


def _random_world(seed: int, *, tell: bool = False) -> World:
    rng = random.Random(seed)
    return World(random_workload(rng), random_swarm(rng), seed, tell=tell)


def _life(world: World, seed: int) -> Life:
    start = world.clock.now()
    problem = None
    quiet = logging.getLogger("stepwell")
    level = quiet.level
    quiet.setLevel(logging.CRITICAL)
    try:
        world.store.limits = StoreLimits(nodes=world.workload.chunk)
        world.live()
    except Violation as violation:
        problem = str(violation)
    except Exception as error:  # an assertion of the production code, or a crash of it, is a finding too
        problem = f"{type(error).__name__}: {error}"
    finally:
        quiet.setLevel(level)
    seconds = (world.clock.now() - start) / 1_000_000
    return Life(seed, problem, world.events, seconds, world.trace_hash, world.seen, world.calls, world.hits)


def planned(
    workload: Workload, plan: dict[int, Fault], *, workers: int = 2, seed: int = 0, tell: bool = False
) -> tuple[Life, World]:
    """A world without any fault but the planned ones, each at the commit with its number."""
    world = World(workload, CALM._replace(workers=workers), seed, tell=tell)
    world.plan = plan
    return _life(world, seed), world


def commits(workload: Workload, *, workers: int = 2) -> int:
    """How many commits it takes without any fault."""
    return planned(workload, {}, workers=workers)[0].calls


def enumerate_faults(
    workload: Workload, faults_at_once: int, *, workers: int = 2, first: int | None = None
) -> Iterator[tuple[dict[int, Fault], Life]]:
    """Every fault at every commit (one at once), or every pair of faults at every pair of commits (two).

    A first fault changes the course, so the second is tried at every later commit of the changed one. With `first`, only
    those whose first fault is at that commit. A plan that goes wrong is not made longer.
    """
    clean, _ = planned(workload, {}, workers=workers)
    if clean.problem is not None:
        yield {}, clean
        return
    numbers = range(1, clean.calls + 1) if first is None else (first,)
    yield from _longer_plans(workload, {}, numbers, faults_at_once, workers)


def _longer_plans(
    workload: Workload, plan: dict[int, Fault], numbers: Iterable[int], more: int, workers: int
) -> Iterator[tuple[dict[int, Fault], Life]]:
    for number, fault in itertools.product(numbers, Fault):
        longer = {**plan, number: fault}
        life, _ = planned(workload, longer, workers=workers)
        if more == 1 or life.problem is not None:
            yield longer, life
        else:
            yield from _longer_plans(workload, longer, range(number + 1, life.calls + 1), more - 1, workers)


def shrink(workload: Workload, plan: dict[int, Fault], *, workers: int = 2) -> dict[int, Fault]:
    """A smallest part of a plan that still goes wrong."""
    for number in list(plan):
        less = {key: fault for key, fault in plan.items() if key != number}
        if planned(workload, less, workers=workers)[0].problem is not None:
            plan = less
    return plan


def shortest(seed: int, *, tries: int = 200) -> list[str]:
    """The story of a failing seed with as few events in its phase of faults as still go wrong."""
    rng = random.Random(seed)
    workload, swarm = random_workload(rng), random_swarm(rng)

    def fails(steps: int) -> bool:
        return _life(World(workload, swarm._replace(steps=steps), seed), seed).problem is not None

    steps = next((steps for steps in range(min(swarm.steps, tries) + 1) if fails(steps)), swarm.steps)
    fewer = dict(swarm.call_faults)
    for fault in list(fewer):
        without = {key: chance for key, chance in fewer.items() if key is not fault}
        candidate = swarm._replace(steps=steps, call_faults=without)
        if _life(World(workload, candidate, seed), seed).problem is not None:
            fewer = without
    world = World(workload, swarm._replace(steps=steps, call_faults=fewer), seed, tell=True)
    life = _life(world, seed)
    return [*(world.trace or []), life.problem or "the shortened story goes well"]


def survey(seeds: Iterable[int]) -> tuple[list[Life], Counter[str]]:
    """Failing lives, and how often each interesting state was reached."""
    failing, seen = [], Counter[str]()
    for seed in seeds:
        life = live(seed)
        seen.update(life.seen)
        if life.problem is not None:
            failing.append(life)
    return failing, seen


SOMETIMES = (
    *(str(fault) for fault in CALL_FAULTS),
    "the store restarts",
    "a late worker is fenced",
    "a lease is lost",
    "a process dies",
    "a body stops",
    "a body times out",
    "a run is retried",
    "a settlement is repeated",
    "a claim is repeated",
    "a suspect is claimed alone",
    "a node is interrupted",
    "a gate left held is finished by another",
    "a late success is recorded",
    "a deadline passes",
    "a rewrite is computed anew",
    "completions are superseded in parts",
    "a run is resumed",
    "a run is healed",
    "a node comes too late",
    "a run is forked",
    "a batch cannot be applied",
    "an op that cannot be applied is refused alone",
    "what cannot be stored is a failure",
    "a worker serves some queues only",
    "a body ends its process",
    "a worker drains for a suspect",
    "a condition does not hold",
    "a node is skipped with its parents",
)
"""States that a survey of thousands of seeds must have reached, or it proves little."""

SHAPES = tuple(shapes())
