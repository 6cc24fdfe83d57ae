"""What commands print of facts, word by word: plans, reports, failures, a node, ages, fields of a schema, a tally."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepwell.cli.commands.checkpoints import ROWS, _show
from stepwell.cli.commands.handlers import fields, kind_of
from stepwell.cli.documents import likeliest, named_values
from stepwell.cli.exits import code_for, raised_at
from stepwell.cli.inputs import import_module
from stepwell.cli.show import pipeline
from stepwell.cli.show.bar import Bar
from stepwell.cli.show.node import MAX_SHOWN, print_node
from stepwell.cli.show.progress import Tally
from stepwell.cli.show.screen import console
from stepwell.cli.show.words import parse_age
from stepwell.core.model import NodeStatus
from stepwell.engine.show.run import _took, _took_of
from stepwell.errors import DefinitionError, InputError
from stepwell.history.measuring import Latency, RunMetrics
from stepwell.history.replay.checkpoint import Checkpoint, WorkItem
from stepwell.triggers import Trigger


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("NO_COLOR", "1")


def test_ages() -> None:
    assert [parse_age(text) for text in ("90s", " 1.5h ", "2 m", "3d", "4w", "0s", "520w")] == [
        *(90, 5_400, 120, 259_200, 2_419_200, 0, 314_496_000)
    ]
    for wrong in ("", "7", "d", "-1d", "1y", "1dd", "1.d", "9999w"):
        with pytest.raises(InputError):
            parse_age(wrong)


STALE = {"stage": "up", "entity": "a", "causes": [{"cause": "missing", "text": "it is missing"}]}
WHOLE = {"stage": "sum", "entity": "", "causes": [{"cause": "x", "text": "one"}, {"cause": "y", "text": "two"}]}


def test_a_plan() -> None:
    plan: dict[str, Any] = {"will_run": [STALE], "may_run": [], "may_appear": []}
    assert pipeline.plan_text(plan) == "will run: 1 state\n  up a  it is missing\nmay run: nothing"
    plan = {"will_run": [], "may_run": [WHOLE] * 52, "may_appear": ["up", "down"]}
    nothing, may, first, *_, last, more, appear = pipeline.plan_text(plan).splitlines()
    assert (nothing, may, first) == ("will run: nothing", "may run: 52 states", "  sum  one; two")
    assert (last, more) == (first, "  and 2 more; --json has all of them")
    assert appear == "  and whatever may appear for up, down"
    assert "more" not in pipeline.plan_text({"will_run": [STALE] * 50, "may_run": [], "may_appear": []})


REPORTS: list[tuple[dict[str, Any], str]] = [
    ({}, "p: nothing to do in 2.0 s"),
    ({"left": {"up a": "failed"}}, "p: nothing ran in 2.0 s\n  left: 1 failed; `stepwell pipeline status` says why"),
    ({"produced": ["x", "y"]}, "p: 2 produced in 2.0 s"),
    ({"produced": ["x", "y"], "unchanged": ["x"]}, "p: 2 produced, 1 of them unchanged in 2.0 s"),
    ({"failed": {"up a": "no"}}, "p: 0 produced, 1 failed in 2.0 s\n  failed: up a: no"),
    (
        {"produced": ["x"], "left": {"a": "stale", "b": "blocked", "c": "stale"}},
        "p: 1 produced in 2.0 s\n  left: 2 stale, 1 blocked; `stepwell pipeline status` says why",
    ),
]


def test_what_collects_many_states_is_shown_by_its_first_causes(capsys: pytest.CaptureFixture[str]) -> None:
    causes = [{"cause": "upstream_stale", "text": f"in/{number} is stale"} for number in range(60)]
    many = {"stage": "sum", "entity": "", "status": "stale", "outputs": ["all"], "causes": causes}
    five = "; ".join(f"in/{number} is stale" for number in range(5))
    plan = pipeline.plan_text({"will_run": [many], "may_run": [], "may_appear": []})
    assert plan.splitlines()[1] == f"  sum  {five}; and 55 more"
    assert "more" not in pipeline.plan_text(
        {"will_run": [many | {"causes": causes[:5]}], "may_run": [], "may_appear": []}
    )
    answer = {"state": "all", "changed_code": [], "upstream": [many] * 51, "record": None, "not_followed": {}}
    lines = pipeline.explanation({**many, **answer}).splitlines()
    assert lines[50:53] == [
        "  upstream_stale: in/49 is stale",
        "  and 10 more; --json has all of them",
        f"  above it: sum is stale: {five}; and 55 more",
    ]
    assert lines[-1] == "  and 1 more; --json has all of them"
    told: dict[str, Any] = {"pipeline": "p", "entities": 0, "stages": {}, "states": [many], "stale": 1}
    problems = [{"path": f"in/{number}", "problem": "odd"} for number in range(51)]
    shown = printed(lambda: pipeline.show_status({**told, "problems": problems}), capsys)
    assert any("upstream_stale: in/4 is stale; and 55 more" in " ".join(shown[start:]) for start in range(len(shown)))
    assert shown[-2:] == ["problem: in/49: odd", "and 1 more; --json has all of them"]
    report = {"pipeline": "p", "produced": [], "unchanged": [], "left": {}, "seconds": 2}
    failed = {f"up {number}": "no" for number in range(51)}
    assert pipeline.report_text({**report, "failed": failed}).endswith("\n  and 1 more; --json has all of them")


@pytest.mark.parametrize(("facts", "text"), REPORTS)
def test_a_report(facts: dict[str, Any], text: str) -> None:
    nothing: dict[str, Any] = {"pipeline": "p", "produced": [], "unchanged": [], "failed": {}, "left": {}, "seconds": 2}
    assert pipeline.report_text(nothing | facts) == text


def test_a_failure() -> None:
    failure = {"error_type": "E", "error": "no", "attempts": 2, "next_retry_at": None, "run_id": "r"}
    assert pipeline.failure_text("up a", failure) == "up a  E: no  (2 in a row; stays failed until `retry`; run r)"
    assert "again at 1970-01-01T00:00:05" in pipeline.failure_text(
        "up a", failure | {"next_retry_at": "1970-01-01T00:00:05Z"}
    )


def test_an_explanation() -> None:
    record = {"produced_at": "then", "inputs": {f"in/{number}": "h" for number in range(12)}}
    answer: dict[str, Any] = {
        **{"state": "out/a", "status": "stale", "stage": "up", "entity": "a", "record": record},
        "causes": [{"cause": "code_changed", "text": "other code"}],
        "changed_code": ["up"],
        "upstream": [{**WHOLE, "status": "failed"}],
        "not_followed": {"eval": "up.py:3", "exec": ""},
    }
    inputs = [f"    in/{number}" for number in range(10)]
    assert pipeline.explanation(answer).splitlines() == [
        "out/a is stale (made by up a)",
        "  code_changed: other code",
        "    up",
        "  above it: sum is failed: one; two",
        "  produced at then from 12 inputs:",
        *inputs,
        "  changes of this are not noticed, unless it is declared (uses=, version=):",
        "    eval (up.py:3)",
        "    exec",
    ]
    source = answer | {
        "stage": None,
        "status": "fresh",
        "causes": [],
        "upstream": [],
        "record": None,
        "not_followed": {},
    }
    assert pipeline.explanation(source) == "out/a is fresh (a source: no stage makes it)"


def printed(what: Callable[[], object], capsys: pytest.CaptureFixture[str]) -> list[str]:
    what()
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_a_status_and_a_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    states = [
        {"stage": "up", "entity": "b", "status": "failed", "outputs": ["out/b"], "causes": STALE["causes"]},
        {"stage": "up", "entity": "a", "status": "fresh", "outputs": ["out/a", "log/a"], "causes": []},
        {"stage": "sum", "entity": "", "status": "waiting", "outputs": ["sum"], "causes": WHOLE["causes"]},
    ]
    told: dict[str, Any] = {
        **{"pipeline": "p", "entities": 2, "fresh": 1, "failed": 1, "waiting": 1, "states": states},
        "stages": {"up": {"fresh": 1_000, "failed": 1}, "sum": {"waiting": 1}},
        "problems": [{"path": "in/x", "problem": "it cannot be read"}],
    }
    lines = printed(lambda: pipeline.show_status(told), capsys)
    assert lines[0] == "p: 2 entities"
    assert lines[1] == "stage fresh stale failed waiting"
    assert lines[3:5] == ["up 1,000 0 1 0", "sum 0 0 0 1"]
    assert "failed out/b missing: it is missing" in lines
    assert "waiting sum x: one; y: two" in lines
    assert "fresh out/a, log/a" in lines
    assert lines[-1] == "problem: in/x: it cannot be read"
    many = told | {"states": states[:1] * 53, "entities": 1, "problems": []}
    lines = printed(lambda: pipeline.show_status(many), capsys)
    assert lines[0] == "p: 1 entity"
    assert lines.count("failed out/b missing: it is missing") == 50
    assert lines[-1] == "and 3 more; --json has all of them"
    lines = printed(lambda: pipeline.show_status(told | {"states": [], "problems": []}), capsys)
    assert lines[-1] == "sum 0 0 0 1"
    lines = printed(lambda: pipeline.show_matrix(["up", "sum"], states), capsys)
    assert [lines[0], *lines[2:5]] == ["entity up sum", "(all) …", "a ✓", "b ✗"]
    assert lines[-1] == "✓ fresh ~ stale ✗ failed ⊘ blocked … waiting ? unrecorded - orphan"


def test_a_node(capsys: pytest.CaptureFixture[str]) -> None:
    attempt: dict[str, Any] = {"number": 1, "status": "FAILED", "seconds": 2.0, "config": {"a": 1}, "outcome": {"b": 2}}
    error = {"type": "E", "message": "no\nway"}
    node: dict[str, Any] = {
        **{"id": "n", "status": "FAILED", "job": "m:f", "reason": "late", "config": {"a": "{{ x }}"}, "output": None},
        "child": None,
        "attempt_list": [
            attempt | {"error": error},
            attempt | {"number": 2, "status": "COMPLETED", "config": {"a": 2}, "outcome": {}, "error": None},
        ],
    }
    assert printed(lambda: print_node(node), capsys) == [
        "n FAILED m:f",
        "late",
        'config {"a":"{{ x }}"}',
        'rendered {"a":2}',
        "attempt 1 FAILED 2.0 s",
        "E: no way",
        'outcome {"b":2}',
        "attempt 2 COMPLETED 2.0 s",
    ]
    bare = node | {"job": None, "reason": None, "config": {}, "attempt_list": [], "output": {"value": "x" * MAX_SHOWN}}
    head, output = printed(lambda: print_node(bare), capsys)
    assert head == "n FAILED"
    assert output.endswith("x... (2,002 characters; --json has all)")
    _, output = printed(lambda: print_node(bare | {"output": {"value": "x" * (MAX_SHOWN - 2)}}), capsys)
    assert output == f'output "{"x" * (MAX_SHOWN - 2)}"'


def test_a_checkpoint(capsys: pytest.CaptureFixture[str]) -> None:
    item = WorkItem(**dict.fromkeys(WorkItem._fields, 0) | {"node": "n", "status": NodeStatus.READY})  # type: ignore[arg-type]
    blank: dict[str, Any] = dict.fromkeys(Checkpoint._fields, None)
    found = Checkpoint(**blank | {"run_id": "r", "step": 7, "effects": (), "idempotency_key": "k", "time": 0.0})
    lines = printed(lambda: _show(found._replace(frontier=())), capsys)
    assert lines[0] == "run r at 7, 1970-01-01T00:00:00Z"
    assert lines[1:] == [
        "state none is declared",
        "effects 0 effects recorded by then",
        "key k",
        "frontier empty: nothing was ready, running or waiting",
    ]
    most = found._replace(label="paid", state={"n": 1}, frontier=(item,) * ROWS)
    lines = printed(lambda: _show(most), capsys)
    assert lines[0].startswith("run r at 7, 'paid', ")
    assert lines[1] == 'state {"n":1}'
    assert sum(line.startswith("n READY") for line in lines) == ROWS
    assert not any("more" in line for line in lines)
    lines = printed(lambda: _show(most._replace(frontier=(item,) * (ROWS + 2))), capsys)
    assert sum(line.startswith("n READY") for line in lines) == ROWS
    assert lines[-1] == "and 2 more; --json shows all"


def test_how_long_a_run_took() -> None:
    none, some = Latency.of([]), Latency.of([1_000_000, 3_000_000])
    blank: dict[str, Any] = dict.fromkeys(RunMetrics._fields, 0)
    made = RunMetrics(**blank | {"step_latency": none, "queue_latency": none, "average_active": 1.25})
    assert _took(made) == "0.00 s for a worker; 1.2 claimed at a time"
    assert _took(made._replace(step_latency=some, queue_latency=some, retries=1_000)) == (
        "1.0 s a step, 95 % within 3.0 s; 3.0 s for a worker; 1.2 claimed at a time; 1,000 tried again"
    )
    no_attempts: Any = SimpleNamespace(attempt_statuses=(), attempts_began=(), attempts_ended=())
    assert _took_of(no_attempts) == "nothing so far"


KINDS: list[tuple[dict[str, Any], str]] = [
    ({}, "any"),
    ({"type": "string"}, "string"),
    ({"type": "string", "pattern": "^secret:[A-Z]+"}, "secret:NAME"),
    ({"type": "string", "pattern": "^[A-Z]+"}, "string"),
    ({"enum": ["a", 1]}, "a | 1"),
    ({"type": "array"}, "list of any"),
    ({"type": "array", "items": {"type": "integer"}}, "list of integer"),
    ({"type": "array", "prefixItems": [{"type": "integer"}, {}]}, "[integer, any]"),
    ({"type": "object"}, "object"),
    ({"type": "object", "additionalProperties": False}, "object"),
    ({"type": "object", "additionalProperties": {"type": "string"}}, "object of string"),
    ({"type": "string", "additionalProperties": {"type": "string"}}, "string"),
    ({"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "string"}]}, "string | null"),
    ({"oneOf": [{"type": each} for each in ("string", "integer", "number", "boolean")]}, "scalar"),
    ({"$ref": "#/$defs/Size"}, "small | large"),
    ({"$ref": "#/$defs/Other"}, "any"),
]


@pytest.mark.parametrize(("field", "kind"), KINDS, ids=range(len(KINDS)))
def test_a_type_of_a_schema(field: dict[str, Any], kind: str) -> None:
    assert kind_of(field, {"$defs": {"Size": {"enum": ["small", "large"]}}}) == kind


def test_the_fields_of_a_schema() -> None:
    optional = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    schema = {
        "required": ["url"],
        "properties": {
            "url": {"type": "string", "description": "where"},
            "n": {"type": "integer", "default": 3},
            "o": optional | {"default": None},
            "p": optional,
        },
    }
    assert list(fields(schema)) == [
        ("url", "string", "required", "where"),
        ("n", "integer", "3", ""),
        ("o", "string", "null", ""),
        ("p", "string | null", "", ""),
    ]
    assert list(fields({})) == []


WHEN: list[tuple[dict[str, Any], str]] = [
    ({"cron": "0 6 * * *"}, "0 6 * * * UTC"),
    ({"cron": "0 6 * * *", "timezone": "Asia/Tokyo"}, "0 6 * * * Asia/Tokyo"),
    ({"every": "90s"}, "every 90 s"),
    ({"webhook": {"secret": "secret:A"}}, "POST /hooks/t (hmac)"),
    ({"webhook": {"secret": "secret:A", "scheme": "slack"}}, "POST /hooks/t (slack)"),
    ({"state": {"pipeline": "p", "state_type": "s"}}, "new s of p"),
    ({"state": {"pipeline": "p", "path": "out/*"}}, "new out/* of p"),
    ({"run_finished": {"workflow": "o", "status": ["FAILED", "COMPLETED"]}}, "after o COMPLETED|FAILED"),
]


@pytest.mark.parametrize(("fields", "text"), WHEN, ids=[next(iter(each)) for each, _ in WHEN])
def test_when_a_trigger_fires(fields: dict[str, Any], text: str) -> None:
    assert Trigger("t", "w", **fields).form.words == text


def test_the_bar_has_only_what_there_is() -> None:
    def drawn(tally: Tally) -> list[str]:
        bar, to = Bar(), console(err=True)
        bar.update(tally)
        with to.capture() as captured:
            to.print(bar._render())
        return [line.rstrip() for line in captured.get().splitlines()][1:]

    assert drawn(Tally(3, 0, 0, 0, 0, ())) == ["  0 done", ""]
    names = ("a", "b")
    assert drawn(Tally(2_000, 1_000, 2, 3, 4, names, paused=True)) == [
        "  1,000 done  2 running  3 waiting  4 failed  paused",
        "  a, b",
    ]


def test_values_of_inputs() -> None:
    problems: list[str] = []
    pairs = ["a=1=2", "a=3", "b", "=c", "d="]
    assert named_values(pairs, lambda name, text: text, problems) == {"a": "1=2", "d": ""}
    assert problems == [
        "--input a: it is given twice",
        "--input 'b': expected NAME=VALUE",
        "--input '=c': expected NAME=VALUE",
    ]
    assert named_values(None, lambda name, text: text, problems) == {}
    for text, kind, value in (
        ("yes", bool, True),
        ("OFF", bool, False),
        ("1", bool, True),
        ("7", int, 7),
        ("7", str, "7"),
        ("null", type(None), None),
        ("null", str, "null"),
        ('"x"', str, '"x"'),
        ("[1]", list, [1]),
    ):
        assert likeliest(text, lambda found, kind=kind: type(found) is kind) == value  # type: ignore[misc]
    assert likeliest('{"a": 7}', lambda found: False) == {"a": 7}
    assert likeliest("7", lambda found: False) == "7"


def test_where_code_of_a_user_raised() -> None:
    with pytest.raises(SyntaxError) as broken:
        compile("x = 1\ny = (\n", "shop.py", "exec")
    assert raised_at(broken.value) == "shop.py:2"
    with pytest.raises(InputError) as refused:
        parse_age("soon")
    place = raised_at(refused.value)
    assert place is not None
    assert place.rpartition(":")[0].endswith("tests/cli/test_texts.py"), "the last line that is not ours"
    assert raised_at(ValueError()) is None
    assert code_for(refused.value) == 2


IMPORTS: dict[str, tuple[str, type[BaseException], str]] = {
    "stopped": ("raise KeyboardInterrupt", KeyboardInterrupt, ""),
    "ends": ("raise SystemExit(0)", DefinitionError, "importing ends ends the process"),
    "broken": ("1 / 0", DefinitionError, "importing broken raised ZeroDivisionError"),
    "lacks": ("import nowhere_to_be", DefinitionError, "importing lacks raised ModuleNotFoundError"),
    "absent_module": ("", DefinitionError, "there is no module 'absent_module' to import from here"),
}


@pytest.mark.parametrize("name", IMPORTS)
def test_a_module_that_cannot_be_imported_says_why(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, kind, told = IMPORTS[name]
    if source:
        (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(kind) as refused:
        import_module(name)
    assert told in str(refused.value)
    if kind is DefinitionError:
        assert code_for(refused.value) == 2
    else:
        assert code_for(refused.value) == 130
