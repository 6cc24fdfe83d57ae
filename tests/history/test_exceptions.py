"""What an effect raised is raised again in a replay, with all that was data in it."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from stepwell import Context, Engine, Workflow, step
from stepwell.base.codec import decode, encode
from stepwell.engine.reports.replay import replay_cassette
from stepwell.errors import BadCassette, ReplayMismatch
from stepwell.history.effects.exceptions import MAX_GROUPS, error_of, error_raised, exception_of
from stepwell.history.replay.loading import read_cassette


class ApiError(Exception):
    def __init__(self, code: int, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


class Odd(Exception):
    """Cannot be made again from what it keeps, and would say something else if it were."""

    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


def caught(act: Callable[[], Any]) -> BaseException:
    try:
        act()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def again(error: BaseException) -> Any:
    """As a record of it is read and served."""
    data = decode(encode(error_raised(error).data()))
    assert error_of(data).data() == data
    return exception_of(error_of(data))


def noted() -> ValueError:
    error = ValueError("wrong")
    error.add_note("look at the till")
    return error


@pytest.mark.parametrize(
    "error",
    [
        ValueError("wrong"),
        KeyError("key"),
        SystemExit(3),
        asyncio.CancelledError(),
        noted(),
        ApiError(503, "busy"),
        Odd(503),
        caught(Path("/nowhere/at/all").read_bytes),
        caught(lambda: json.loads("{")),
        caught(b"\xff".decode),
        urllib.error.HTTPError("http://x", 503, "busy", {}, None),  # type: ignore[arg-type]
        httpx.HTTPStatusError("bad", request=httpx.Request("GET", "http://x"), response=httpx.Response(500)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_it_is_of_its_class_and_says_what_it_said(error: BaseException) -> None:
    made = again(error)
    assert isinstance(made, type(error))
    assert str(made) == str(error)
    assert str(again(made)) == str(error)


def test_it_has_the_attributes_that_are_data() -> None:
    assert (again(ApiError(503, "busy")).code, again(ApiError(503, "busy")).detail) == (503, "busy")
    assert again(Odd(503)).code == 503
    missing = again(caught(Path("/nowhere/at/all").read_bytes))
    assert (missing.errno, missing.filename) == (2, "/nowhere/at/all")
    assert again(urllib.error.HTTPError("http://x", 503, "busy", {}, None)).code == 503  # type: ignore[arg-type]
    assert again(noted()).__notes__ == ["look at the till"]


def test_what_is_not_data_is_missed_with_a_reason() -> None:
    response = httpx.Response(500)
    made = again(httpx.HTTPStatusError("bad", request=httpx.Request("GET", "http://x"), response=response))
    with pytest.raises(AttributeError, match="no 'response' here: it comes from the record of an effect"):
        made.response  # noqa: B018


def test_groups_within_groups_are_recorded_as_deep_as_they_are_read_again() -> None:
    error: Exception = ValueError("the innermost")
    for _ in range(MAX_GROUPS + 5):
        error = ExceptionGroup("around it", [error])
    found, depth = error_raised(error), 0
    while found.exceptions:
        (found,), depth = found.exceptions, depth + 1
    assert depth == MAX_GROUPS
    assert error_of(error_raised(error).data()) == error_raised(error)


def test_a_group_is_a_group() -> None:
    made = again(ExceptionGroup("many", [ValueError("a"), ExceptionGroup("inner", [KeyError("k"), ApiError(1, "x")])]))
    wrong, rest = made.split(ValueError)
    assert [str(each) for each in wrong.exceptions] == ["a"]
    assert rest.exceptions[0].exceptions[1].code == 1


def test_no_exception_is_too_odd_to_be_recorded() -> None:
    deep: Exception = ValueError("at the bottom")
    for _ in range(3 * MAX_GROUPS):
        deep = ExceptionGroup("deeper", [deep])
    again(deep)
    assert "no message" in str(again(Mute()))
    odd = ValueError("half \ud800")
    odd.__dict__.update({"half": "\ud800", "\udfff": 1, "itself": odd, "deep": 2.5})
    assert "half \\ud800" in str(again(odd))
    assert vars(again(odd)) == {"deep": 2.5}


class Closed(Exception):
    """Raises whatever it is asked, and not only exceptions."""

    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(f"no {name} for you")


class Rows(dict[str, Any]):
    def values(self) -> Any:
        raise SystemError("no values for you")


def test_an_exception_that_raises_when_it_is_asked_is_recorded_with_what_it_could_tell() -> None:
    assert error_raised(Closed()).data()["bases"][1:] == ["builtins.Exception", "builtins.BaseException"]
    odd = ValueError("odd")
    odd.__dict__.update({"rows": Rows(a=1), "fine": 1})
    assert error_raised(odd).data()["attributes"] == {"fine": 1}
    odd.args = (Rows(a=1),)
    assert "args" not in error_raised(odd).data()


def test_what_a_body_catches_is_what_its_effect_raised_however_odd(engine: Engine) -> None:
    class Asks(Workflow):
        @step(side_effects="recordable")
        def ask(self, ctx: Context) -> str:
            try:
                ctx.effect("ask", _refuse)
            except Closed as error:
                return type(error).__name__
            return "nothing was raised"

    run = engine.run(Asks())
    assert run.output("ask") == "Closed"
    (effect,) = run.effects("ask")
    assert effect.error is not None
    assert effect.error.type.endswith(".Closed")


def _refuse() -> None:
    raise Closed


def test_a_class_that_is_gone_is_its_nearest_base() -> None:
    data = error_raised(ConnectionRefusedError("no line")).data()
    data["type"] = data["bases"][0] = "gone.away.Refused"
    made = exception_of(error_of(data))
    assert (type(made), str(made)) == (ConnectionError, "no line")


def exit_(code: int) -> None:
    raise SystemExit(code)


def unavailable() -> None:
    raise urllib.error.HTTPError("http://x", 503, "busy", {}, None)  # type: ignore[arg-type]


class Catching(Workflow):
    """Its output depends on what it caught."""

    @step(side_effects="recordable")
    def catch(self, ctx: Context) -> list[Any]:
        found: list[Any] = []
        try:
            ctx.effect("fetch", unavailable)
        except urllib.error.HTTPError as error:
            found.append(error.code)
        try:
            ctx.effect("leave", exit_, 4)
        except SystemExit as error:
            found.append(error.code)
        return found


def test_a_body_that_looks_at_what_it_caught_is_replayed(engine: Engine, tmp_path: Any) -> None:
    run = engine.run(Catching())
    assert run.output("catch") == [503, 4]
    assert run.replay().effects == 2
    recorded = read_cassette(run.export(tmp_path / "catching.json").read_bytes())
    assert replay_cassette(recorded, jobs=["tests"]).effects == 2


def test_an_attribute_of_a_record_that_was_changed_is_named(engine: Engine, tmp_path: Any) -> None:
    path = engine.run(Catching()).export(tmp_path / "catching.json")
    cassette = json.loads(path.read_text())
    cassette["nodes"][0]["effects"][0]["raised"]["attributes"]["code"] = 500
    with pytest.raises(ReplayMismatch, match="effect 0: the recorded response of 'fetch' was changed"):
        replay_cassette(read_cassette(json.dumps(cassette).encode()), jobs=["tests"])


@pytest.mark.parametrize("wrong", [7, {}, [7], [{}], [{"type": "a", "message": "b", "bases": [], "exceptions": 3}]])
def test_rubbish_in_place_of_the_exceptions_of_a_group_is_told(engine: Engine, tmp_path: Any, wrong: Any) -> None:
    path = engine.run(Catching()).export(tmp_path / "catching.json")
    cassette = json.loads(path.read_text())
    cassette["nodes"][0]["effects"][0]["raised"]["exceptions"] = wrong
    with pytest.raises(BadCassette, match="exceptions"):
        read_cassette(json.dumps(cassette).encode())


def test_groups_within_groups_without_end_are_told(engine: Engine, tmp_path: Any) -> None:
    path = engine.run(Catching()).export(tmp_path / "catching.json")
    cassette = json.loads(path.read_text())
    inner: dict[str, Any] = {"type": "a", "message": "b", "bases": []}
    for _ in range(MAX_GROUPS + 5):
        inner = {"type": "a", "message": "b", "bases": [], "exceptions": [inner]}
    cassette["nodes"][0]["effects"][0]["raised"] = inner
    with pytest.raises(BadCassette, match="too many groups within groups"):
        read_cassette(json.dumps(cassette).encode())


class Stamped(Exception):
    """Asks the clock when it is made."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.at = time.time()


class Made(Exception):
    """Neither `__new__` nor `__init__` take what it keeps."""

    def __new__(cls, one: str, other: str) -> Made:
        return super().__new__(cls, one, other)

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} and {other}")


def stamp() -> None:
    raise Stamped("slow down")


class Limited(Workflow):
    @step(side_effects="recordable")
    def ask(self, ctx: Context) -> Any:
        try:
            ctx.effect("ask", stamp)
        except Stamped as error:
            return error.at
        return None


def test_what_an_exception_does_when_it_is_made_is_not_held_against_the_body(engine: Engine) -> None:
    assert engine.run(Limited()).replay().effects == 1


def test_a_class_that_makes_itself_is_still_of_its_class() -> None:
    made = again(Made("this", "that"))
    assert isinstance(made, Made)
    assert str(made) == "this and that"


@pytest.mark.parametrize(
    "name", ["json.dumps", "subprocess.Popen", "builtins.print", "builtins.list", "json", "no.such"]
)
def test_only_a_class_of_exceptions_is_called_to_raise_again_what_an_effect_raised(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cassette may name anything."""
    monkeypatch.setattr("subprocess.Popen.__init__", lambda *_: pytest.fail("it was called"))
    for bases, kind in (([], Exception), ([name, "builtins.ValueError"], ValueError)):
        again = exception_of(error_of({"type": name, "message": "ls", "bases": bases}))
        assert (type(again), str(again)) == (kind, "ls")
    assert capsys.readouterr().out == ""
