"""The nodes that a class and its bases declare, in the order of writing.

Bases come first, in reverse method resolution order: a subclass inherits the chain, adds to it, and overrides methods. A base
is never changed.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from ...base.place import SourceLine, place_of
from .decorators import Declaration, Reference, declared, wrapped_declaration

Report = Callable[[str, str], None]
"""Called with problems: the name of a node or input, and what is wrong with it."""


class DeclaredNode(NamedTuple):
    """A node of a class that is being compiled."""

    name: str
    declaration: Declaration
    method: Callable[..., Any] | None
    """None when the node is `name = step(job=...)`."""
    is_job: bool
    before: Reference | None
    after: Reference | None

    @property
    def place(self) -> SourceLine:
        return self.declaration.place if self.method is None else place_of(self.method)


class Gathered(NamedTuple):
    """All nodes of a class by name, and the names of all declarations, also of overridden ones."""

    nodes: dict[str, DeclaredNode]
    names: dict[Declaration, str]

    def name_of(self, reference: Reference) -> str:
        """The name of the node that a name or a function means; it may not exist."""
        if isinstance(reference, str):
            return reference
        declaration = declared(reference)
        if declaration is None:  # a plain method that overrides a node, or something unknown
            return getattr(reference, "__name__", repr(reference))
        # A node of another class does not belong to this one, even if both have one of this name.
        return self.names.get(declaration, getattr(reference, "__qualname__", repr(reference)))


def gathered(cls: type, report: Report) -> Gathered:
    members = Gathered({}, {})
    for owner in reversed(cls.__mro__):
        for name, value in vars(owner).items():
            declaration = declared(value)
            if declaration is not None:
                other = members.names.setdefault(declaration, name)
                if other != name:
                    report(name, f"is {other!r} under another name; a method is one node ({declaration.place})")
                _declare(members.nodes, name, declaration, value, report)
                continue
            lost = wrapped_declaration(value)
            if lost is not None:
                report(name, f"is no method any more; @{lost.kind} goes above every other decorator ({lost.place})")
            elif name in members.nodes and isinstance(value, FunctionType):
                # A plain method in a subclass replaces the body of a node; its place and options stay.
                members.nodes[name] = members.nodes[name]._replace(method=value, is_job=False)
            elif name in members.nodes:
                kind = members.nodes[name].declaration.kind
                report(name, f"{value!r} takes the place of the {kind} of this name; write a method")
    return members


def _declare(
    nodes: dict[str, DeclaredNode], name: str, declaration: Declaration, value: object, report: Report
) -> None:
    method = value if isinstance(value, FunctionType) else None
    if method is None and declaration.job is None:
        report(name, f"{declaration.kind}(...) decorates a method or names a job ({declaration.place})")
    node = DeclaredNode(name, declaration, method, declaration.job is not None, declaration.before, declaration.after)
    old = nodes.get(name)
    moves = node.before is not None or node.after is not None
    if old is not None and old.declaration.kind == declaration.kind and not moves:
        nodes[name] = node._replace(before=old.before, after=old.after)  # decorated anew, it keeps its place
        return
    nodes.pop(name, None)
    nodes[name] = node
