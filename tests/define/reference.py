"""The class form in the plainest words: a chain is a list, and every step is put into it where it says.

Written from the design and not from the code, to be compared with it. Slow and short on purpose; knows only names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

PREVIOUS = "PREVIOUS"
"""Stands for the dependency; no node of the tests has this name."""

Form = Literal["step", "task", "method", "value"]
Depends = tuple[str, ...] | None | Literal["unsaid"]


class Refused(Exception):
    """The definition is wrong."""


@dataclass(frozen=True)
class Written:
    """One name in a class body, and what is written there."""

    name: str
    form: Form
    depends_on: Depends = "unsaid"
    also_depends_on: tuple[str, ...] | None = None
    before: str | None = None
    after: str | None = None
    body: Literal["def", "async def", "job", "nothing"] = "def"
    parameters: tuple[str, ...] = ()
    was: tuple[str, ...] = ()


@dataclass
class Node:
    """A node of a class: what was written about it last, its parameters, and its place in the chain."""

    written: Written
    parameters: tuple[str, ...]
    before: str | None
    after: str | None


def build(classes: Sequence[Sequence[Written]]) -> dict[str, list[str]]:
    """The dependencies of each node of the last class, nodes in the order of declaration; each class has the one before
    it as its base. Every class has to be right, not only the last."""
    depends: dict[str, list[str]] = {}
    for count in range(1, len(classes) + 1):
        nodes = inherit(classes[:count])
        chain = chain_of(nodes)
        depends = {name: dependencies(node, chain) for name, node in nodes.items()}
        check(nodes, depends)
    return depends


def inherit(classes: Sequence[Sequence[Written]]) -> dict[str, Node]:
    nodes: dict[str, Node] = {}
    for body in classes:
        for position, written in enumerate(body):
            check_alone(written)
            earlier = [each for each in body[:position] if each.name == written.name]
            if any(each.form in ("step", "task") for each in [written, *earlier]) and earlier:
                raise Refused("a node is written twice")
            old = nodes.get(written.name)
            if written.form == "value" and old:
                raise Refused("something else takes the place of a node")
            if written.form == "method" and old:
                old.parameters = written.parameters
            if written.form not in ("step", "task"):
                continue
            new = Node(written, written.parameters, written.before, written.after)
            if old and old.written.form == written.form and not written.before and not written.after:
                new.before, new.after = old.before, old.after
                nodes[written.name] = new
            else:
                nodes.pop(written.name, None)
                nodes[written.name] = new
    return nodes


def check_alone(written: Written) -> None:
    """What is wrong whatever else the class says."""
    if written.form in ("step", "task") and written.body == "nothing":
        raise Refused("neither a method nor a job")
    if written.form == "step":
        if written.before and written.after:
            raise Refused("two places")
        if written.depends_on != "unsaid" and written.also_depends_on is not None:
            raise Refused("depends_on and also_depends_on")
    if written.form == "task":
        if written.depends_on == "unsaid":
            raise Refused("a task without dependencies")
        if PREVIOUS in (written.depends_on or ()):
            raise Refused("nothing is previous to a task")


def chain_of(nodes: dict[str, Node]) -> list[str]:
    """Put one step after the other into a list, always the first written one whose place is there already."""
    waiting = [name for name, node in nodes.items() if node.written.form == "step"]
    chain: list[str] = []
    while waiting:
        able = [
            name
            for name in waiting
            if (nodes[name].before is None or nodes[name].before in chain)
            and (nodes[name].after is None or nodes[name].after in chain)
        ]
        if not able:
            raise Refused("an unknown place, a task's, or a circle")
        name = able[0]
        waiting.remove(name)
        before, after = nodes[name].before, nodes[name].after
        if before is not None:
            chain.insert(chain.index(before), name)
        elif after is not None:
            at = chain.index(after) + 1
            while at < len(chain) and came_after(chain[at], after, nodes):
                at += 1
            chain.insert(at, name)
        else:
            chain.append(name)
    return chain


def came_after(name: str, place: str, nodes: dict[str, Node]) -> bool:
    """Whether a step stands where it does because it, or the one it stands next to, was put after `place`."""
    node = nodes[name]
    if node.after == place:
        return True
    next_to = node.before or node.after
    return next_to is not None and next_to != place and came_after(next_to, place, nodes)


def dependencies(node: Node, chain: list[str]) -> list[str]:
    written = node.written
    said = (PREVIOUS,) if written.depends_on == "unsaid" else written.depends_on or ()
    found: list[str] = []
    for name in (*said, *(written.also_depends_on or ())):
        if name == PREVIOUS:
            place = chain.index(written.name)
            if place == 0:
                continue
            name = chain[place - 1]
        if name not in found:
            found.append(name)
    return found


def check(nodes: dict[str, Node], depends: dict[str, list[str]]) -> None:
    """What is wrong with the class as a whole."""
    if any(name not in nodes for names in depends.values() for name in names):
        raise Refused("an unknown dependency")
    done: list[str] = []
    while len(done) < len(nodes):
        able = [name for name in nodes if name not in done and all(each in done for each in depends[name])]
        if not able:
            raise Refused("a cycle")
        done += able
    for name, node in nodes.items():
        if any(each != "ctx" and each not in ancestors(name, depends) for each in node.parameters):
            raise Refused("a parameter that nothing fills")
    former = [name for node in nodes.values() for name in dict.fromkeys(node.written.was)]
    if any(name in nodes for name in former) or len(set(former)) < len(former):
        raise Refused("a former name that is taken")


def ancestors(name: str, depends: dict[str, list[str]]) -> set[str]:
    return {each for parent in depends[name] for each in (parent, *ancestors(parent, depends))}


def order(depends: dict[str, list[str]]) -> list[str]:
    """All nodes by (level, order key, name), worked out for each as the design defines it."""

    def level(name: str) -> int:
        return 1 + max(map(level, depends[name]), default=-1)

    def path_hash(name: str) -> bytes:
        above = sorted(path_hash(parent) for parent in depends[name]) or [b"__start__"]
        return sha256(name.encode() + b"\0" + b"".join(above)).digest()

    def order_key(name: str) -> int:
        parents = depends[name]
        among = [each for each in depends if (min(parents) in depends[each] if parents else not depends[each])]
        above = path_hash(min(parents)) if parents else b"__start__"
        return int.from_bytes(sha256(above + among.index(name).to_bytes(4, "big")).digest()[:8], "big")

    return sorted(depends, key=lambda name: (level(name), order_key(name), name))
