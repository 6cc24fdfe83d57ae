"""Handlers by name: found lazily, checked without being called, described for people and programs."""

from __future__ import annotations

import subprocess
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint

import pytest
from pydantic import BaseModel, ConfigDict, Field

from stepwell.base.secret_refs import SecretRef
from stepwell.base.secrets import Secrets
from stepwell.errors import DefinitionError, PermanentError
from stepwell.handlers import Handlers, Problem, handler, registry


class Place(BaseModel):
    address: str
    zoom: int = Field(3, ge=1, le=20)
    options: dict[str, str | int] = {}
    near: list[float] = []


class Found(BaseModel):
    result: list[float]


@handler("geocode", example={"address": "{{ input.address }}"}, retry=3)
def geocode(ctx: object, config: Place) -> Found:
    """Find the coordinates of an address."""
    return Found(result=[1.5, float(config.zoom)])


def is_template(text: str) -> bool:
    return "{{" in text


def test_listing_handlers_loads_nothing_heavy():
    code = (
        "import sys, stepwell.handlers as h; handlers = h.Handlers(); names = list(handlers); "
        "assert 'http_request' in handlers; print([m for m in ('pydantic', 'httpx', 'jinja2') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_threads_that_use_the_handlers_of_a_module_first_all_find_them(tmp_path, monkeypatch):
    text = "from stepwell import handler\n@handler('{0}')\ndef {0}(ctx, config: dict) -> dict: ...\n"
    for name in ("early", "late"):
        (tmp_path / f"{name}_handlers.py").write_text(text.format(name))
    monkeypatch.syspath_prepend(tmp_path)
    handlers = Handlers(["early_handlers", "late_handlers"])
    arrived = threading.Barrier(4)
    original = registry._imported

    def imported(module):
        found = original(module)
        if module == "early_handlers":
            arrived.wait(30)  # each has imported it before one of them goes on
        return found

    monkeypatch.setattr(registry, "_imported", imported)
    with ThreadPoolExecutor(4) as threads:
        assert [each.name for each in threads.map(handlers.__getitem__, ["late"] * 4)] == ["late"] * 4


def test_a_handler_is_described_by_its_function():
    assert geocode.config is Place
    assert geocode.output is Found
    assert geocode.description == "Find the coordinates of an address."
    assert geocode.output_fields() == {"result"}
    assert geocode.retry is not None
    assert geocode.retry.max_attempts == 3
    assert not geocode.is_async
    assert geocode.config_schema()["properties"]["zoom"]["maximum"] == 20
    assert geocode.output_schema()["required"] == ["result"]
    assert handler("bare")(lambda ctx, config: None).output_schema() is None
    for said in ("Where is it?", ""):
        assert handler("other", description=said)(geocode.function).description == said


def test_all_problems_of_a_config_are_told_each_with_its_path():
    problems = geocode.check_config({"adress": "x", "zoom": 99, "options": {"a": [1]}, "near": [1, "x"]})
    assert [(each.place, each.message) for each in problems if each.place != ("options", "a")] == [
        (("adress",), "unknown field; did you mean 'address'?"),
        (("address",), "this field is missing"),
        (("zoom",), "expected at most 20"),
        (("near", 1), "expected a number"),
    ]
    assert {each.place for each in problems} == {("adress",), ("address",), ("zoom",), ("options", "a"), ("near", 1)}


def test_what_is_known_only_later_is_not_judged():
    config = {
        "address": "{{ a.result }}",
        "zoom": "{{ a.zoom }}",
        "near": ["{{ a.x }}", 2],
        "options": {"k": "secret:K"},
    }
    assert geocode.check_config(config, is_template) == []
    assert geocode.check_config({"zoom": "{{ a.zoom }}"}, is_template) == [
        Problem(("address",), "this field is missing")
    ]
    assert [each.place for each in geocode.check_config({"address": "x", "zoom": "many"}, is_template)] == [("zoom",)]
    assert geocode.check_config({"address": "x", "zoom": "{{ a.zoom }}"}) != []


def test_a_secret_is_refused_at_check_where_none_can_be():
    handlers = Handlers()
    url = {"url": "secret:URL", "headers": {"X": "secret:X"}, "method": "secret:M", "bearer": "secret:T"}
    assert handlers["http_request"].check_config(url, is_template) == [
        Problem(("url",), "no secret can be used here"),
        Problem(("method",), "no secret can be used here"),
    ]
    told = "transform takes no secrets: what it is given it returns"
    config = {"template": {"a": ["x", "secret:DB"]}}
    assert handlers["transform"].check_config(config, is_template) == [Problem(("template", "a", 1), told)]
    assert handlers["shell"].check_config({"args": ["x", "secret:DB"], "env": {"K": "secret:DB"}}) == [
        Problem(("args", 1), "no secret can be used here")
    ]


def test_a_config_that_is_no_object_is_one_problem():
    assert geocode.check_config(["x"]) == [Problem((), "expected an object, got a list")]
    assert geocode.check_config(None) == [Problem((), "expected an object, got null")]


def test_a_rendered_config_that_is_refused_fails_for_good_and_shows_no_values():
    with pytest.raises(PermanentError) as caught:
        Handlers([geocode]).call(geocode, None, {"address": 7, "zoom": "tomato"})
    assert str(caught.value).splitlines() == [
        "geocode cannot work with its config:",
        "  - config.address: expected text",
        "  - config.zoom: expected a whole number",
    ]


def test_what_was_rendered_is_checked_as_what_was_written():
    with pytest.raises(PermanentError, match=r"config\.zom: unknown field; did you mean 'zoom'"):
        Handlers([geocode]).call(geocode, None, {"address": "x", "zom": 4})
    handlers = Handlers()
    with pytest.raises(PermanentError, match="transform takes no secrets"):
        handlers.call(handlers["transform"], None, {"template": [SecretRef("DB")]})


def test_a_model_that_is_returned_becomes_data():
    assert Handlers([geocode]).call(geocode, None, {"address": "x"}) == {"result": [1.5, 3.0]}


def test_a_secret_reaches_a_handler_and_never_its_output():
    @handler("echo")
    def echo(ctx, config):
        assert config["key"] == "swordfish-1"
        return {"result": f"key {config['key']}", "list": [config["key"]]}

    secrets = Secrets(provider={"KEY": "swordfish-1"})
    handlers = Handlers([echo], secrets=secrets)
    assert handlers.call(echo, None, {"key": SecretRef("KEY")}) == {"result": "key ***", "list": ["***"]}


def test_data_that_looks_like_a_reference_is_data():
    @handler("echo")
    def echo(ctx, config):
        return config

    handlers = Handlers([echo], secrets={"DB": "swordfish-2"})
    for value in ("secret:DB", {"name": "DB"}, ["secret:DB"]):
        assert handlers.call(echo, None, {"key": value}) == {"key": value}


def test_a_model_takes_only_real_references():
    class Config(BaseModel):
        key: SecretRef

    with pytest.raises(DefinitionError, match="say config="):  # a class in a function is not found by its name

        @handler("keyed")
        def keyed(ctx, config: Config):
            return None

    made = handler("keyed", config=Config)(lambda ctx, config: None)
    for value in ("secret:DB", {"name": "DB"}):
        with pytest.raises(PermanentError):
            made.validated({"key": value})
    assert made.validated({"key": SecretRef("DB")}).key == SecretRef("DB")
    assert made.config_schema()["properties"]["key"]["type"] == "string"


def test_a_name_that_is_built_in_or_given_twice_is_refused():
    mine = handler("http_request")(lambda ctx, config: None)
    with pytest.raises(DefinitionError, match="built in"):
        Handlers([mine])
    with pytest.raises(DefinitionError, match="two handlers 'a'"):
        Handlers([handler("a")(lambda ctx, config: 1), handler("a")(lambda ctx, config: 2)])
    with pytest.raises(DefinitionError, match="module"):
        Handlers([print])  # type: ignore[list-item]


@pytest.mark.parametrize("name", ["", "a:b", "a b", None, "ä"])
def test_a_bad_name_is_refused(name):
    with pytest.raises(DefinitionError, match="a name of letters"):
        handler(name)


def test_a_function_that_takes_other_things_is_refused():
    with pytest.raises(DefinitionError, match=r"this takes \(config\)"):
        handler("x")(lambda config: None)


def test_a_module_gives_the_handlers_in_it(monkeypatch):
    module = types.ModuleType("shop_handlers")
    module.geocode = geocode  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "shop_handlers", module)
    assert Handlers(["shop_handlers"])["geocode"] is geocode


def test_packages_bring_handlers_by_entry_points(monkeypatch):
    points = [EntryPoint("geocode", f"{__name__}:geocode", "stepwell.handlers"), EntryPoint("bad", "nowhere:x", "g")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    monkeypatch.setitem(sys.modules, __name__, types.SimpleNamespace(geocode=geocode))
    handlers = Handlers()
    assert "geocode" in handlers
    assert handlers["geocode"] is geocode
    with pytest.raises(DefinitionError, match="'bad' cannot be loaded from nowhere:x"):
        handlers["bad"]
    points += [EntryPoint(name, f"{__name__}:geocode", "g") for name in ("other",)]
    points.append(EntryPoint("none", "json:dumps", "g"))
    for name in ("other", "none"):
        with pytest.raises(DefinitionError, match=f"expected the handler '{name}'"):
            Handlers()[name]


def test_what_is_not_there_is_told_before_anything_runs():
    handlers = Handlers([geocode], secrets=Secrets(environment={}))
    assert handlers.missing("nothing", {}) == [
        "there is no handler 'nothing' here; give it to the engine: Engine(handlers=[...]), or in settings"
    ]
    assert handlers.missing("geocode", {"address": "x"}) == []
    [told] = handlers.missing("geocode", {"options": {"key": "secret:MAPS"}})
    assert told.startswith("secret:MAPS is not here: set STEPWELL_SECRET_MAPS")
    [told] = handlers.missing("call_external_service", {"service": "crm"})
    assert told.startswith("there is no service 'crm' here")
    assert handlers.missing("call_external_service", {"service": "{{ input.service }}"}) == []


def test_a_model_that_takes_anything_says_nothing_about_fields():
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        a: int = 1

    made = handler("open", config=Open, output=Open)(lambda ctx, config: None)
    assert made.output_fields() is None
    assert made.check_config({"whatever": 1}) == []


@pytest.mark.parametrize("kind", [str, dict, int, bytes, types.SimpleNamespace])
def test_only_a_model_says_anything_about_fields(kind):
    def plain(ctx, config): ...

    plain.__annotations__ = {"config": kind, "return": kind}
    made = handler("plain")(plain)
    assert (made.config, made.output_fields()) == (None, None)
    assert made.check_config({"whatever": 1}) == []


def test_an_unknown_field_is_told_at_any_depth():
    class Inner(BaseModel):
        model_config = ConfigDict(extra="forbid")
        known: int = 1

    class Nested(BaseModel):
        model_config = ConfigDict(extra="forbid")
        inner: Inner = Inner()
        more: list[Inner] = []

    made = handler("nested", config=Nested)(lambda ctx, config: None)
    told = made.check_config({"odd": 1, "inner": {"odd": 1}, "more": [{"known": 2}, {"odd": 1}]})
    assert [each.place for each in told] == [("odd",), ("inner", "odd"), ("more", 1, "odd")]


def test_there_are_as_many_handlers_as_names():
    for given in ([], [geocode]):
        assert len(Handlers(given)) == len(list(Handlers(given))) > len(given)
