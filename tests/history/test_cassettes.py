"""A run becomes a file, which is replayed without its store, by this version and by later ones."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stepwell
from stepwell import Builder, Context, Engine, Workflow, step
from stepwell.base.codec import decode, encode, sha256
from stepwell.base.ids import RunId
from stepwell.core.graph import Graph, NodeSpec
from stepwell.core.model import RunStatus
from stepwell.core.model.outputs import with_delta
from stepwell.engine.reports.replay import replay_cassette
from stepwell.errors import BadCassette, DefinitionError, InputError, MissingJob, ReplayMismatch
from stepwell.history.effects.exceptions import EffectError
from stepwell.history.effects.record import Effect
from stepwell.history.replay.cassette import cassette_text
from stepwell.history.replay.loading import load_cassette, read_cassette
from stepwell.history.replay.recorded import RecordedNode, RecordedRun
from tests.history import replayed
from tests.history.replayed import CHANGED, Order

FOLDER = Path(__file__).parent / "cassettes"
STORED = sorted(FOLDER.glob("*.cassette.json"))
FORM: dict[str, Any] = json.loads((FOLDER / "order-format-1.cassette.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def as_it_was() -> None:
    CHANGED.clear()


@pytest.mark.parametrize("file", STORED, ids=lambda path: path.name)
def test_every_cassette_that_was_ever_stored_is_replayed(file: Path) -> None:
    assert replay_cassette(load_cassette(file), jobs=["tests"]).executed


def test_there_are_some() -> None:
    assert len(STORED) >= 3


def test_a_run_and_its_cassette_replay_alike(engine: Engine, tmp_path: Path) -> None:
    run = engine.run(Order())
    path = run.export(tmp_path / "order.cassette.json")
    replay = replay_cassette(load_cassette(path), jobs=["tests"])
    assert replay._replace(seconds=0) == run.replay()._replace(seconds=0)
    before = path.read_bytes()
    assert run.export(str(path)).read_bytes() == before
    assert list(tmp_path.iterdir()) == [path] or engine.store.url != "memory://", "no part of a file is left"


def one() -> int:
    return 1


class WithJob(Workflow, side_effects="pure"):
    begin = step(job="tests.history.test_cassettes:one")

    @step
    def end(self, begin: int) -> int:
        return begin


def test_a_class_that_is_given_may_run_what_it_names(engine: Engine, tmp_path: Path) -> None:
    """Functions of its nodes, too: nothing has to be allowed by the name of its module."""
    path = engine.run(WithJob()).export(tmp_path / "with-job.json")
    assert replay_cassette(load_cassette(path), WithJob).executed == ("begin", "end")
    with pytest.raises(MissingJob):
        replay_cassette(load_cassette(path))


def test_a_fork_goes_into_one_file(engine: Engine, tmp_path: Path) -> None:
    origin = engine.run(Order())
    fork = origin.fork("pay", input={"count": 5}).wait(60).check()
    report = replay_cassette(load_cassette(fork.export(tmp_path / "fork.json")), jobs=["tests"])
    assert report._replace(seconds=0) == fork.replay()._replace(seconds=0)
    assert len(report.executed) == 4


def test_what_cannot_be_replayed_of_a_fork_is_told_by_its_cassette_too(engine: Engine, tmp_path: Path) -> None:
    origin = engine.run(Order())
    fork = origin.fork("pay", input={"count": 5}).wait(60).check()
    origin.delete()
    report = replay_cassette(load_cassette(fork.export(tmp_path / "fork.json")), jobs=["tests"])
    assert report.executed == ("pay",)
    assert report.stubbed == fork.replay().stubbed


def changed(change: Callable[[dict[str, Any]], None]) -> str:
    form = copy.deepcopy(FORM)
    change(form)
    return json.dumps(form)


def node(form: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in form["nodes"] if each["id"] == name)


def test_a_changed_response_is_named() -> None:
    def change(form: dict[str, Any]) -> None:
        node(form, "convert")["effects"][1]["response"]["rate"] = 1.35

    with pytest.raises(ReplayMismatch) as caught:
        replay_cassette(read_cassette(changed(change)), jobs=["tests"])
    assert (caught.value.node, caught.value.attempt, caught.value.effect) == ("convert", 1, 0)


def test_a_changed_body_is_named() -> None:
    CHANGED.add("cents")
    with pytest.raises(ReplayMismatch, match=r"node 'convert', attempt 1: its output"):
        replay_cassette(read_cassette(json.dumps(FORM)), jobs=["tests"])


def set_at(*path: Any) -> Callable[[dict[str, Any]], None]:
    *way, last, value = path

    def change(form: dict[str, Any]) -> None:
        at: Any = form
        for part in way:
            at = at[part]
        at[last] = value

    return change


GRAPH = FORM["run"]["graph"]
GIVEN = {"index": 0, "output": 1, "sha256": sha256(b"1")}


def test_a_node_of_another_graph_is_one_of_the_run() -> None:
    larger = Graph([NodeSpec(f"n{number}", f"n{number}", job="m:f") for number in range(99)])

    def change(form: dict[str, Any]) -> None:
        form["graphs"][larger.digest] = decode(larger.document)
        form["nodes"][0]["graph"] = larger.digest

    with pytest.raises(
        BadCassette, match=r"\$\.nodes\[0\]\.graph: this graph has nodes that the graph of the run has not"
    ):
        read_cassette(changed(change))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (set_at("cassette", 2), r"\$\.cassette: it has form 2"),
        (set_at("cassette", True), r"\$\.cassette: it has form True"),
        (set_at("run", 7), r"\$\.run: expected an object"),
        (set_at("run", "seed", 7), r"\$\.run\.seed: expected a string"),
        (set_at("run", "seed", "-7"), r"\$\.run\.seed: expected a whole number"),
        (set_at("run", "seed", "9" * 5_000), r"\$\.run\.seed: expected a whole number"),
        (set_at("run", "status", "DONE"), r"no status 'DONE'"),
        (set_at("run", "graph", "0"), r"\$\.run\.graph: this graph is not among"),
        (set_at("graphs", GRAPH, 0, "id", "other"), r"\$\.graphs.*it was changed"),
        (set_at("nodes", 0, 3), r"\$\.nodes\[0\]: expected an object"),
        (set_at("nodes", 0, "index", 99), r"\$\.nodes\[0\]\.index: the graph has no node"),
        (set_at("nodes", 0, "attempt", 0), r"\$\.nodes\[0\]\.attempt: expected at least 1"),
        (set_at("nodes", 0, "attempt", True), r"\$\.nodes\[0\]\.attempt: expected a whole number"),
        (set_at("nodes", 0, "output", {"cents": 1}), r"\$\.nodes\[0\]\.output: it was changed"),
        (set_at("nodes", 0, "effects", None), r"\$\.nodes\[0\]\.effects: expected a list"),
        (set_at("nodes", 1, "effects", [{}]), r"\$\.nodes\[1\]\.effects\[0\]\.index: it is missing"),
        (set_at("nodes", 1, "given", {}), r"\$\.nodes\[1\]\.given: expected a list"),
        (set_at("nodes", 1, "given", [3]), r"\$\.nodes\[1\]\.given\[0\]: expected an object"),
        (set_at("nodes", 1, "given", [GIVEN | {"index": 99}]), r"\.given\[0\]\.index: the graph has no node"),
        (set_at("nodes", 1, "given", [GIVEN | {"output": 2}]), r"\.given\[0\]\.output: it was changed"),
        (set_at("nodes", []), None),
    ],
)
def test_what_is_wrong_with_a_file_is_told(change: Callable[[dict[str, Any]], None], told: str | None) -> None:
    text = changed(change)
    if told is None:
        assert replay_cassette(read_cassette(text), jobs=["tests"]).executed == ()
        return
    with pytest.raises(BadCassette, match=told):
        read_cassette(text)


def effect(**changes: Any) -> Effect:
    plain = Effect("a", 1, 0, "ask", [1], {"b": 2}, None, "x" * 64, "y" * 64, 0, 1.5, 0.25, False, False, None)
    return plain._replace(**changes)


ERROR = EffectError("m.E", "no", ["no"], ["m.E", "builtins.Exception"], {"code": 7}, ())
GROUP = EffectError("builtins.ExceptionGroup", "two", None, ["builtins.ExceptionGroup"], {}, (ERROR, ERROR))
WHOLE = Graph([NodeSpec("a", "a", job="m:f"), NodeSpec("b", "b", job="m:g", depends_on=("a",))])
EARLIER = Graph([NodeSpec("a", "a", job="m:e")])
OUTPUT, OTHER = encode({"x": 1}), with_delta(encode(2), encode({"total": 3}))


def test_everything_that_is_recorded_comes_back_from_a_file() -> None:
    effects = (
        effect(index=-1, name="stepwell.now", response=[5, 9]),
        effect(response=None, durable=True, from_attempt=1),
        effect(index=1, occurrence=1, awaited=True, response=None, error=ERROR),
        effect(index=2, occurrence=2, response=None, error=GROUP),
        effect(index=3, response=None, response_hash="", open=True),
    )
    first = RecordedNode(0, RunId("origin"), encode({"n": 0}), EARLIER, 2, 1, OTHER, (), "it was removed")
    second = RecordedNode(
        *(1, RunId("r"), encode({"n": 1}), WHOLE, 1, 0, OUTPUT, effects, None, ((0, OUTPUT), (0, OTHER)))
    )
    run = RecordedRun(
        RunId("r"), "flow", "m:Flow", RunStatus.COMPLETED, WHOLE, encode({"n": 1}), 2**64 - 1, (first, second)
    )
    for recorded in (run, run._replace(target=None, seed=0, nodes=(second,)), run._replace(status=RunStatus.FAILED)):
        text = cassette_text(recorded)
        assert cassette_text(read_cassette(text)) == text
        found = read_cassette(text)
        assert found._replace(nodes=()) == recorded._replace(nodes=())
        for read, written in zip(found.nodes, recorded.nodes, strict=True):
            asked = tuple(each._replace(node=written.graph.order[written.index]) for each in written.effects)
            assert read.effects == tuple(each._replace(attempt=written.attempt) for each in asked)
            assert read._replace(effects=()) == written._replace(effects=())


def test_only_what_is_run_again_needs_code_that_may_run() -> None:
    def replayed_with(side_effects: Any, stub: str | None = None) -> Any:
        graph = Graph([NodeSpec("a", "a", job="nowhere.at.all:pay", side_effects=side_effects)])
        done = RecordedNode(0, RunId("r"), encode({}), graph, 1, 0, OUTPUT, (), stub)
        recorded = RecordedRun(RunId("r"), "flow", None, RunStatus.COMPLETED, graph, encode({}), 0, (done,))
        return replay_cassette(read_cassette(cassette_text(recorded)), jobs=["tests"])

    assert replayed_with("opaque").stubbed == {"a": "opaque"}
    assert replayed_with("recordable", "its run is gone").stubbed == {"a": "its run is gone"}
    with pytest.raises(MissingJob, match=r"nowhere\.at\.all:pay is not registered"):
        replayed_with("recordable")


NODE_FIELDS: dict[str, tuple[Any, Any]] = {
    "index": (0, -1),
    "attempt": (1, 0),
    "generation": (0, -1),
    "output": (..., ...),
    "sha256": ("", 7),
    "effects": ([], {}),
}
EFFECT_FIELDS: dict[str, tuple[Any, Any]] = {
    "index": (-1, -2),
    "name": ("", 7),
    "request": (..., ...),
    "request_sha256": ("", 7),
    "response_sha256": ("", 7),
    "occurrence": (0, -1),
    "time": (0, "now"),
    "seconds": (0.5, True),
}
OPTIONAL: dict[str, tuple[Any, Any]] = {
    "durable": (True, 1),
    "awaited": (False, "x"),
    "from_attempt": (1, 0),
    "raised": (None, []),
    "open": (None, 1),
}


@pytest.mark.parametrize("field", [*EFFECT_FIELDS, *OPTIONAL])
def test_every_field_of_an_effect_is_checked(field: str) -> None:
    right, wrong = (EFFECT_FIELDS | OPTIONAL)[field]
    at = ("nodes", 1, "effects", 0)
    check_field(at, field, right, wrong, field in OPTIONAL)


@pytest.mark.parametrize("field", NODE_FIELDS)
def test_every_field_of_a_node_is_checked(field: str) -> None:
    check_field(("nodes", 1), field, *NODE_FIELDS[field], False)


def check_field(at: tuple[Any, ...], field: str, right: Any, wrong: Any, is_optional: bool) -> None:
    def told(text: str) -> str:
        try:
            read_cassette(text)
        except BadCassette as refused:
            return "\n".join(line for line in str(refused).splitlines() if f"{at[-2]}[{at[-1]}].{field}: " in line)
        return ""

    def without(form: dict[str, Any]) -> None:
        place: Any = form
        for part in at:
            place = place[part]
        place.pop(field, None)

    assert ("it is missing" in told(changed(without))) is not is_optional
    if wrong is not ...:
        assert "expected" in told(changed(set_at(*at, field, wrong)))
        assert told(changed(set_at(*at, field, right))) == ""


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "7", '{"nodes": {}}', "[" * 1_000, '{"cassette": 1, "cassette": 1}']
)
def test_rubbish_is_refused(text: str) -> None:
    with pytest.raises(BadCassette):
        read_cassette(text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_cassette(tmp_path / "none.json")


def test_reading_imports_nothing() -> None:
    text = changed(set_at("run", "target", "antigravity:Wings"))
    read_cassette(text)
    assert "antigravity" not in sys.modules


TOKEN = "sk-live-hush-4711"


def greet(ctx: Context) -> dict[str, str]:
    token = stepwell.secret(TOKEN)
    answer = ctx.effect("greet", lambda token: f"hello, bearer of {token}", token)
    return {"answer": answer, "used": token}


def test_secrets_are_not_in_it_and_it_still_replays(engine: Engine, tmp_path: Path) -> None:
    w = Builder("secrets")
    w.node("greet", job=greet, side_effects="recordable")
    run = engine.run(w)
    path = run.export(tmp_path / "secret.cassette.json")
    assert TOKEN not in path.read_text(encoding="utf-8")
    assert "***" in path.read_text(encoding="utf-8")
    assert replay_cassette(load_cassette(path), jobs=["tests"]).executed


def test_a_secret_in_a_graph_is_not_exported(engine: Engine, tmp_path: Path) -> None:
    w = Builder("secrets")
    w.node("rate", job=replayed.rate, args={"base": stepwell.secret("sk-live-other"), "currency": "x"})
    run = engine.run(w)
    with pytest.raises(InputError, match="marked as a secret"):
        run.export(tmp_path / "secret.cassette.json")
    assert not (tmp_path / "secret.cassette.json").exists()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        return found + [each for key, item in value.items() for each in places(item, (*path, key))]
    if isinstance(value, list):
        return found + [each for place, item in enumerate(value) for each in places(item, (*path, place))]
    return found


@pytest.mark.parametrize("wrong", [None, 7, -1, 2**70, True, "x", [], {}, [{}], 0.5], ids=repr)
def test_nothing_that_is_put_anywhere_gets_through_or_breaks_it(wrong: Any) -> None:
    """Every place of a cassette in turn: it is refused, replays as if nothing were (of what no body looks at), or differs."""
    harmless = {
        "time",
        "seconds",
        "stepwell",
        "status",
        "workflow",
        "attempt",
        "generation",
        "index",
        "durable",
        "nodes",
    }
    for path in places(FORM):
        text = changed(set_at(*path, wrong))
        if text == json.dumps(FORM):
            continue
        try:
            replay_cassette(read_cassette(text), jobs=["tests"])
        except (BadCassette, ReplayMismatch, DefinitionError):
            continue
        name = next(part for part in reversed(path) if isinstance(part, str))
        of_the_clock = name == "occurrence" and text_at(path[:-1])["name"] == "stepwell.now"
        assert name in harmless or of_the_clock or wrong is None, f"{path} = {wrong!r} was not noticed"


def text_at(path: tuple[Any, ...]) -> Any:
    at: Any = FORM
    for part in path:
        at = at[part]
    return at


def test_a_forged_clock_is_refused() -> None:
    def change(form: dict[str, Any]) -> None:
        effect = node(form, "convert")["effects"][0]
        effect["response"] = ["soon"]
        effect["response_sha256"] = sha256(encode(["soon"]))

    with pytest.raises(BadCassette, match="a list of whole numbers"):
        read_cassette(changed(change))
