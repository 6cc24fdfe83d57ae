"""Random class definitions, as data, and the real classes that are written like them."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from stepwell.define import PREVIOUS, Workflow, step, task
from tests.define import reference, shop
from tests.define.reference import Written

NAMES = [f"n{number}" for number in range(9)]
GHOST = "ghost"


@st.composite
def definitions(draw: st.DrawFn) -> list[list[Written]]:
    """One to three classes, each the base of the next; most of them right."""
    known: list[str] = []
    classes: list[list[Written]] = []
    for _ in range(draw(st.integers(1, 3))):
        body: list[Written] = []
        for _ in range(draw(st.integers(0 if classes else 1, 5))):
            inherited = [name for name in known if all(each.name != name for each in body)]
            overrides = inherited and draw(st.booleans())
            fresh = [name for name in NAMES if name not in known]
            name = draw(st.sampled_from(inherited if overrides or not fresh else fresh[:2]))
            body.append(draw(written(name, known, inherited=bool(overrides))))
            if name not in known:
                known.append(name)
        classes.append(body)
    return classes


@st.composite
def written(draw: st.DrawFn, name: str, known: Sequence[str], *, inherited: bool) -> Written:
    others = [each for each in known if each != name] or [GHOST]
    references = st.sampled_from(others)
    several = st.lists(references, min_size=1, max_size=2).map(tuple)
    parameters = draw(st.sampled_from([(), (), (), (), ("ctx",), tuple(known[:1])]))
    if inherited and draw(st.integers(0, 2)) == 0:
        return Written(name, "method", parameters=parameters)
    body = draw(st.sampled_from(["def", "def", "async def", "job"]))
    if body == "job":
        parameters = ()
    was = draw(st.sampled_from([(), (), (), (f"old_{name}",), (f"old_{name}", f"older_{name}")]))
    if draw(st.integers(0, 4)) == 0:
        depends = draw(st.none() | several) if known else None
        return Written(name, "task", depends, body=body, parameters=parameters, was=was)
    where = draw(st.sampled_from(["end", "end", "end", "before", "after", "after"])) if known else "end"
    anchor = draw(references)
    kind = draw(st.sampled_from(["unsaid", "unsaid", "explicit", "also", "none"])) if known else "unsaid"
    explicit = draw(st.lists(st.sampled_from([reference.PREVIOUS, *others]), max_size=3).map(tuple))
    return Written(
        name,
        "step",
        depends_on=explicit if kind == "explicit" else None if kind == "none" else "unsaid",
        also_depends_on=draw(several) if kind == "also" else None,
        before=anchor if where == "before" else None,
        after=anchor if where == "after" else None,
        body=body,
        parameters=parameters,
        was=was,
    )


def write(classes: Sequence[Sequence[Written]], choose: Any) -> type[Workflow]:
    """The last of real classes that say the same. `choose(things)` picks how a node is named: by name, or by any
    function or declaration that stood for it so far."""
    made: type[Workflow] = Workflow
    things: dict[str, list[Any]] = {}

    def refer(name: str | None) -> Any:
        return (
            None if name is None else PREVIOUS if name == reference.PREVIOUS else choose([name, *things.get(name, ())])
        )

    for number, body in enumerate(classes):

        def execute(namespace: Any, body: Sequence[Written] = body) -> None:
            for each in body:
                namespace[each.name] = thing = value_of(each, refer)
                if each.form != "value":
                    things.setdefault(each.name, []).append(thing)

        made = types.new_class(f"Class{number}", (made,), {}, execute)
    return made


def value_of(each: Written, refer: Any) -> Any:
    """What stands in a class body behind a name."""
    if each.form == "value":
        return 7
    method = _method(each)
    if each.form == "method":
        return method
    options: dict[str, Any] = {"was": each.was}
    if each.body == "job":
        options["job"] = shop.no_parameters
    if each.depends_on != "unsaid":
        options["depends_on"] = None if each.depends_on is None else [refer(name) for name in each.depends_on]
    if each.also_depends_on is not None:
        options["also_depends_on"] = [refer(name) for name in each.also_depends_on]
    if each.form == "step":
        options |= {"before_step": refer(each.before), "after_step": refer(each.after)}
    declaration = (step if each.form == "step" else task)(**options)
    return declaration if each.body in ("job", "nothing") else declaration(method)


def _method(each: Written) -> Any:
    namespace: dict[str, Any] = {}
    keyword = "async def" if each.body == "async def" else "def"
    exec(f"{keyword} {each.name}({', '.join(['self', *each.parameters])}): ...", namespace)
    return namespace[each.name]
