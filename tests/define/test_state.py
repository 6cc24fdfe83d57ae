"""A state is checked where it is written, and a delta where it is returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pytest

from stepwell import Builder, DefinitionError, Delta, Workflow, step
from stepwell.base.types.kinds import ADVICE
from stepwell.core.graph import Graph, from_frozen, to_frozen
from stepwell.core.model.outputs import delta_of, output_of
from stepwell.define import definition_of
from stepwell.define.types.reducing import refusal
from stepwell.errors import GraphError, StateError
from stepwell.reducers import add, append, extend, maximum, merge, minimum, union
from tests.define import states


def three(one: int, two: int, three: int) -> int:
    return one


async def later(current: int, new: int) -> int:
    return new


def strange(current: int, new: complex) -> int:
    return 0


class Wrong:
    missing: int
    text: Annotated[list[str], append] = "x"  # type: ignore[assignment]
    words: Annotated[str, append] = ""
    sums: Annotated[str, add] = ""
    either: Annotated[int | str, maximum] = 0
    mixed: Annotated[list[Any], union]
    keys: Annotated[list[str], merge]
    two: Annotated[int, add, maximum] = 0
    nameless: Annotated[int, lambda a, b: a] = 0
    triple: Annotated[int, three] = 0
    slow: Annotated[int, later] = 0
    odd: Annotated[int, strange] = 0
    raw: range = range(0)
    _hidden: int = 0


def test_all_that_is_wrong_with_a_state_is_said_at_once_with_the_line() -> None:
    with pytest.raises(GraphError) as caught:

        class Report(Workflow):
            State = Wrong

            @step
            def begin(self) -> None: ...

    assert [str(problem) for problem in caught.value.problems] == [
        "Wrong.missing: expected a default: what the field is before any node has run",
        "Wrong.text: its default: expected list[str], got 'x' (str)",
        "Wrong.words: append is for lists, for example list[str]",
        "Wrong.sums: add is for int, float, Decimal and timedelta",
        "Wrong.either: maximum is for numbers, for str, Decimal, and for dates and times",
        "Wrong.mixed: union sorts its items, so it is for set[...], list[str], list[int] or list[float]",
        "Wrong.keys: merge is for objects, for example dict[str, int]",
        "Wrong.two: expected one reducer, got 2: add, maximum",
        "Wrong.nameless: a lambda cannot be a reducer, because no message could name it: write a function",
        "Wrong.triple: tests.define.test_state:three(one: 'int', two: 'int', three: 'int') -> 'int' cannot be a reducer: it "
        "is called with two values, what the field is and what a node returned",
        "Wrong.slow: tests.define.test_state:later cannot be a reducer: it must return its result at once",
        f"Wrong.odd: a field of a state cannot be complex: {ADVICE.format(name='complex')}",
        f"Wrong.raw: a field of a state cannot be range: {ADVICE.format(name='range')}",
        "Wrong._hidden: a field cannot begin with an underscore",
    ]
    assert "test_state.py:" in str(caught.value)


def test_a_node_cannot_be_called_state_beside_one() -> None:
    with pytest.raises(GraphError, match="this name means the state"):

        class Report(Workflow):
            State = states.Notes

            @step
            def state(self) -> None: ...


def test_without_a_state_the_name_is_a_name_like_any_other() -> None:
    class Report(Workflow):
        @step
        def state(self) -> str:
            return "CA"

        @step
        def use(self, state: str) -> str:
            return state

    assert Report.workflow_graph().nodes["use"].needs == ("state",)


def test_a_parameter_state_without_a_state_says_how_to_get_one() -> None:
    with pytest.raises(GraphError, match=r"nothing fills its parameter 'state'.*class State: \.\.\."):

        class Report(Workflow):
            @step
            def use(self, state: Any) -> None: ...


class Colour(Enum):
    red: int = 1


@pytest.mark.parametrize("declared", [NamedTuple("Pair", [("a", int)]), int, type("Empty", (), {}), Colour])
def test_a_state_is_a_plain_class_with_fields(declared: type) -> None:
    with pytest.raises(DefinitionError, match="cannot be a state"):
        Builder("x", state=declared)


def test_a_builder_needs_a_state_that_other_processes_find() -> None:
    class Local:
        count: int = 0

    with pytest.raises(DefinitionError, match="move it to the top level of its module"):
        Builder("x", state=Local)
    with pytest.raises(DefinitionError, match="expected a class that declares a state"):
        Builder("x", state="states:Notes")  # type: ignore[arg-type]


def test_args_cannot_hold_a_state_beside_one() -> None:
    with pytest.raises(DefinitionError, match="contain 'state', which is the state that a job gets by itself"):
        Builder("x", state=states.Notes).node("a", job=states.note, args={"state": 1})
    Builder("x").node("a", job=states.note, args={"state": 1})


def test_they_can_without_one_also_if_the_job_is_imported_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "job_of_later.py").write_text("def take(state): ...")
    monkeypatch.syspath_prepend(tmp_path)
    w = Builder("x")
    w.node("a", job="job_of_later:take", args={"state": 1})
    w._check_named_jobs()


def test_a_subclass_adds_to_the_state_of_its_base() -> None:
    class More(states.Research, name="more"):
        class State(states.Research.State):
            more: int = 0

    class Same(states.Research, name="same"):
        pass

    found = [definition_of(each(topic="x")).bodies.state for each in (states.Research, More, Same)]
    names = [list(each.fields) for each in found if each is not None]
    assert names[0] == names[2]
    assert {*names[1]} - {*names[0]} == {"more"}


def test_a_graph_names_the_state_of_a_builder_and_one_without_is_what_it_was() -> None:
    graph = states.dynamic().graph()
    assert graph.state == "tests.define.states:Notes"
    assert Graph.load(graph.document) == graph
    form = to_frozen(graph, 0)
    assert form["state"] == graph.state
    assert from_frozen(form) == graph
    plain = Graph(list(graph))
    assert plain.digest != graph.digest
    assert plain.document.startswith(b"[")
    assert "state" not in to_frozen(plain, 0)
    assert states.Research.workflow_graph().state is None  # the class itself says it


class Unsorted:
    numbers: Annotated[list[int], union] = [3, 1, 3]  # noqa: RUF012
    words: Annotated[list[str], union] = ("b", "a")  # type: ignore[assignment]
    kept: Annotated[list[int], append] = [3, 1, 3]  # noqa: RUF012


def test_the_default_of_a_union_is_sorted_and_has_each_item_once() -> None:
    state = definition_of(_with(Unsorted)).bodies.state
    assert state is not None
    assert {name: field.default for name, field in state.fields.items()} == {
        "numbers": [1, 3],
        "words": ["a", "b"],
        "kept": [3, 1, 3],
    }
    assert Unsorted.numbers == [3, 1, 3]


class Graded:
    grade: Annotated[Literal["a", "b"], maximum] = "a"
    levels: Annotated[list[Literal[1, 2]], union]


def test_a_literal_is_reduced_as_its_values_are() -> None:
    state = definition_of(_with(Graded)).bodies.state
    assert state is not None
    assert [*state.fields] == ["grade", "levels"]


LISTS = (list, list[str], list[float], Sequence[int], list[str] | None)
SETS = (set[str], frozenset[int])
DICTS = (dict, dict[str, int], Mapping[str, Any])
NUMBERS = (int, float, int | float)
ALONE = (Decimal, timedelta)
DATES = (date, datetime, time, str)
OTHERS = (bool, bytes, Any, list[dict[str, int]], int | str, Decimal | int, Literal["a", 1], None)
FITS: dict[Any, tuple[Any, ...]] = {
    append: (list, list[str], list[float], Sequence[int], list[dict[str, int]]),
    extend: (list, list[str], list[float], Sequence[int], list[dict[str, int]]),
    union: (list[str], list[float], Sequence[int], *SETS),
    merge: DICTS,
    add: (*NUMBERS, *ALONE, Literal[1, 2]),
    maximum: (*NUMBERS, *ALONE, *DATES, float | None, date | None, Literal["a", "b"], Literal[1, 2]),
    minimum: (*NUMBERS, *ALONE, *DATES, float | None, date | None, Literal["a", "b"], Literal[1, 2]),
}
ANNOTATIONS = (
    *(*LISTS, *SETS, *DICTS, *NUMBERS, *ALONE, *DATES, *OTHERS),
    *(float | None, date | None, date | datetime, Literal["a", "b"], Literal[1, 2]),
)


@pytest.mark.parametrize("reducer", FITS)
def test_a_reducer_is_for_these_annotations_and_no_others(reducer: Any) -> None:
    assert [each for each in ANNOTATIONS if refusal(reducer, each) is None] == [
        each for each in ANNOTATIONS if each in FITS[reducer]
    ]
    assert all(refusal(three, each) is None for each in ANNOTATIONS), "one of the user takes what it takes"


class Kinds:
    items: Annotated[list[int], append]
    lists: Annotated[list[list[int]], extend]
    low: Annotated[float | None, minimum] = None
    anything: Annotated[list, append]  # type: ignore[type-arg]
    title: Annotated[str, states.longest] = ""
    name: str = ""


def encoded(delta: Delta) -> bytes:
    state = definition_of(_with(Kinds)).bodies.state
    assert state is not None
    return state.encoded(delta, b"null", "search")


def _with(state: type) -> Builder:
    w = Builder("kinds", state=state)
    w.node("search", job=states.note)
    return w


@pytest.mark.parametrize(
    "fields",
    [
        {"items": 1},
        {"items": [1, 2]},
        {"lists": [[1], [2]]},
        {"low": 1},
        {"low": None},
        {"anything": {"a": [1]}},
        {"title": "x", "name": "y"},
    ],
)
def test_a_delta_of_the_right_types_is_kept_beside_the_output(fields: dict[str, Any]) -> None:
    stored = encoded(Delta(**fields))
    assert output_of(stored) == b"null"
    assert delta_of(stored) is not None


def test_an_output_without_a_delta_is_kept_as_it_is() -> None:
    assert encoded(Delta("line\nbreak")) == b"null"
    assert output_of(b'"a\\nb"') == b'"a\\nb"'
    assert delta_of(b'"a\\nb"') is None


def test_all_that_is_wrong_with_a_delta_is_said_at_once() -> None:
    with pytest.raises(StateError) as caught:
        encoded(Delta(items="x", lists=[1], title=3, name=None, note="?", anything={1: 2}, low=float("nan")))
    assert str(caught.value) == (
        "node 'search' returned a Delta that Kinds refuses:\n"
        "  - items: expected list[int] or int, got 'x' (str)\n"
        "  - lists[0]: expected list[int], got 1 (int)\n"
        "  - title: expected str, got 3 (int)\n"
        "  - name: expected str, got None (NoneType)\n"
        "  - note: there is no such field; there are items, lists, low, anything, title, name\n"
        "  - anything: the key 1 is not a string (at $)\n"
        "  - low: expected float or None, got nan (float)"
    )
    assert caught.value.node == "search"


def test_a_view_is_an_instance_of_the_state_that_cannot_be_changed() -> None:
    state = definition_of(_with(Kinds)).bodies.state
    assert state is not None
    view = state.view({"items": [1], "lists": [], "low": None, "anything": [], "title": "a", "name": "b"})
    assert isinstance(view, Kinds)
    assert view.items == [1]
    assert repr(view).startswith("Kinds(items=[1], lists=[], low=None")
    with pytest.raises(StateError, match=r"return Delta\(title=\.\.\.\)"):
        view.title = "x"
    with pytest.raises(StateError):
        del view.title
