"""Arguments win over the environment, which wins over files."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from stepwell import InputError
from stepwell.base.settings import Settings, read_settings
from stepwell.cli.connect import Connection
from tests.cli.conftest import Shop


def test_without_anything_said_the_defaults_of_the_engine_hold(tmp_path: Path) -> None:
    assert read_settings({}, {}, tmp_path) == Settings()
    assert Settings().for_workers == {}


def test_arguments_win_over_the_environment_which_wins_over_files(tmp_path: Path) -> None:
    (tmp_path / "stepwell.toml").write_text('store = "file"\nlease_seconds = 60\nmax_concurrent_nodes = 2\n')
    environment = {"STEPWELL_STORE": "environment", "STEPWELL_LEASE_SECONDS": "7.5"}
    found = read_settings({"store": "argument"}, environment, tmp_path)
    assert found == Settings(store="argument", lease_seconds=7.5, max_concurrent_nodes=2)
    assert read_settings({"store": None}, environment, tmp_path).store == "environment"
    assert read_settings({"store": None}, {"STEPWELL_STORE": ""}, tmp_path).store == "file"


def test_pyproject_is_read_where_there_is_no_stepwell_toml(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "shop"\n[tool.stepwell]\nstore = "project"\n')
    assert read_settings({}, {}, tmp_path).store == "project"
    (tmp_path / "stepwell.toml").write_text('store = "own"\n')
    assert read_settings({}, {}, tmp_path).store == "own"


def test_a_project_that_does_not_name_us_is_not_read(tmp_path: Path) -> None:
    for other in ("[tool.other\n", '[project]\ntool = "x"\n', 'tool = "stepwell"\n'):
        (tmp_path / "pyproject.toml").write_text(other)
        assert read_settings({}, {}, tmp_path) == Settings()
    (tmp_path / "pyproject.toml").write_text("[tool.stepwell\n")
    with pytest.raises(InputError, match=r"pyproject\.toml: "):
        read_settings({}, {}, tmp_path)


SETTINGS: dict[str, tuple[object, object, object]] = {
    "max_concurrent_nodes": (3, "3", 3),
    "lease_seconds": (2, "2", 2.0),
    "close_seconds": (0.5, "0.5", 0.5),
    "store": ("memory://", "memory://", "memory://"),
    "broker": ("redis://x", "redis://x", "redis://x"),
    "secrets_folder": ("/run", "/run", "/run"),
    "server": ("http://x", "http://x", "http://x"),
    "token": ("abcd", "abcd", "abcd"),
    "jobs": (["a", "b.c"], "a, b.c", ("a", "b.c")),
    "handlers": (["a"], "a", ("a",)),
    "pipelines": (["a:b", "x.json"], "a:b,x.json", ("a:b", "x.json")),
    "allowed_hosts": (["x.test"], "x.test", ("x.test",)),
    "private_networks": (["10.0.0.0/8"], "10.0.0.0/8", ("10.0.0.0/8",)),
    "shell": (["git", "ls"], "git,ls", ("git", "ls")),
    "environment": ("production", "production", "production"),
    "environment_colour": ("red", "red", "red"),
    "trace_url": (*["https://t.test/{run}?node={node}"] * 2, "https://t.test/{run}?node={node}"),
}
WRONG: dict[str, tuple[str, ...]] = {
    "max_concurrent_nodes": ("true", "1.5", '"x"', "[1]"),
    **dict.fromkeys(("lease_seconds", "close_seconds"), ("true", '"x"', "[1]")),
    **dict.fromkeys(("store", "broker", "secrets_folder", "server", "token"), ("7", "true", '["x"]')),
    **dict.fromkeys(("jobs", "handlers"), ("7", "true", '[""]', "[7]", '["a:b"]', '["a", "b c"]')),
    **dict.fromkeys(("pipelines", "allowed_hosts"), ("7", "true", '[""]', "[7]")),
    "private_networks": ("7", '["everywhere"]', '["10.0.0.0/8", ""]'),
    "shell": ("7", '[""]', "[7]"),
    "environment": ("7", '""', f'"{"x" * 41}"', '["x"]'),
    "environment_colour": ("7", '"pink"', '"#ff0000"', '"url(x)"'),
    "trace_url": (
        *("7", '"t.test/{run}"', '"ftp://t.test/{run}"', '"javascript:alert(1)//{run}"', '"https:///{run}"'),
        *('"https://{run}.test/"', '"https://t.test/{attempt}"', '"https://t.test/ {run}"', '"https://a:b@t.test/"'),
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_read_from_a_file_and_the_environment_and_what_it_needs_is_told(
    tmp_path: Path, name: str
) -> None:
    in_file, in_environment, expected = SETTINGS[name]
    file = tmp_path / "stepwell.toml"
    file.write_text(f"{name} = {json.dumps(in_file)}\n")
    for found in (
        read_settings({}, {}, tmp_path),
        read_settings({}, {f"STEPWELL_{name.upper()}": str(in_environment)}, tmp_path / "elsewhere"),
    ):
        value = getattr(found, name)
        assert (type(value), value) == (type(expected), expected)
        assert found == Settings(**{name: expected})  # type: ignore[arg-type]
    for wrong in WRONG[name]:
        file.write_text(f"{name} = {wrong}\n")
        with pytest.raises(InputError, match=rf"^stepwell\.toml: {name}: expected "):
            read_settings({}, {}, tmp_path)


def test_any_program_may_be_allowed_or_none(tmp_path: Path) -> None:
    for written, expected in (("true", True), ("false", False)):
        (tmp_path / "stepwell.toml").write_text(f"shell = {written}\n")
        assert read_settings({}, {}, tmp_path).shell is expected
        assert read_settings({}, {"STEPWELL_SHELL": written}, tmp_path / "elsewhere").shell is expected


def test_every_setting_has_its_line_here() -> None:
    assert (
        {each.name for each in fields(Settings)}
        == {*SETTINGS, "services", "secrets"}
        == {*WRONG, "services", "secrets"}
    )


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "stepwell.toml").write_text('stor = "x"\nmax_concurrent_nodes = "many"\nstore = 7\n')
    with pytest.raises(InputError) as told:
        read_settings({}, {"STEPWELL_LEASE_SECONDS": "long"}, tmp_path)
    unknown, *others = str(told.value).splitlines()
    assert unknown.startswith("stepwell.toml: stor: the table of settings has no field 'stor'; did you mean 'store'?")
    assert others == [
        "stepwell.toml: max_concurrent_nodes: expected a whole number, got 'many'",
        "stepwell.toml: store: expected a URL, got 7",
        "STEPWELL_LEASE_SECONDS: expected a number of seconds, got 'long'",
    ]


def test_modules_are_a_list_or_have_commas_in_between(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.stepwell]\njobs = ["shop.jobs", "shop.mail"]\n')
    assert read_settings({}, {}, tmp_path).jobs == ("shop.jobs", "shop.mail")
    assert read_settings({}, {"STEPWELL_JOBS": "a.b, c"}, tmp_path).jobs == ("a.b", "c")
    assert read_settings({"jobs": ("x",)}, {"STEPWELL_JOBS": "a.b, c"}, tmp_path).for_workers == {"jobs": ("x",)}
    for wrong in ("a:b", "a,,b", "/etc"):
        with pytest.raises(InputError, match="expected a list of names of modules, got"):
            read_settings({}, {"STEPWELL_JOBS": wrong}, tmp_path)


def test_settings_are_frozen(tmp_path: Path) -> None:
    with pytest.raises(AttributeError):
        read_settings({}, {}, tmp_path).store = "x"  # type: ignore[misc]


def test_a_file_sets_the_store_of_a_command(shop: Shop) -> None:
    shop.write("stepwell.toml", 'store = "sqlite:///from-file.db"\n')
    shop("run", "shop:Again")
    assert (shop.folder / "from-file.db").exists()
    assert len(shop("ls", "--json").json) == 1
    assert "other.db" in shop("ls", "--json", "--store", "sqlite:///other.db", code=4).err


def test_a_broken_file_is_exit_code_2(shop: Shop) -> None:
    shop.write("stepwell.toml", "store = \n")
    assert shop("ls", code=2).err.startswith("error: stepwell.toml: ")


def test_services_and_secrets_are_tables_in_the_environment_json(tmp_path: Path) -> None:
    (tmp_path / "stepwell.toml").write_text(
        'secrets_folder = "/run/secrets"\nprivate_networks = ["10.0.0.0/8"]\nshell = ["git"]\nhandlers = ["shop"]\n'
        '[services.crm]\nbase_url = "https://crm.test"\nbearer = "secret:T"\n[secrets]\nT = { env = "TOKEN" }\n'
    )
    found = read_settings({}, {}, tmp_path)
    assert found.services["crm"].base_url == "https://crm.test"
    assert found.secrets["T"].env == "TOKEN"
    assert (found.shell, found.handlers, found.secrets_folder) == (("git",), ("shop",), "/run/secrets")
    environment = {"STEPWELL_SERVICES": '{"mail": {"base_url": "https://mail.test"}}', "STEPWELL_SHELL": "true"}
    found = read_settings({}, environment, tmp_path)
    assert (list(found.services), found.shell) == (["mail"], True)


def test_mistakes_in_tables_are_told_without_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "stepwell.toml").write_text(
        'private_networks = ["everywhere"]\n[services.crm]\nbearer = 7\n[secrets]\nT = "hunter2"\n'
    )
    with pytest.raises(InputError) as told:
        read_settings({}, {"STEPWELL_SERVICES": "hunter2"}, tmp_path)
    assert str(told.value).splitlines() == [
        "stepwell.toml: private_networks: expected a list of networks, as 10.0.0.0/8 or 127.0.0.1:8080, got a list of 1",
        "stepwell.toml: services.crm: a service needs its base_url",
        "stepwell.toml: services.crm.bearer: expected one line of text, or secret:NAME",
        'stepwell.toml: secrets.T: expected a table that says where the secret is, as { env = "CRM_TOKEN" } or '
        '{ file = "/run/crm" }',
        "STEPWELL_SERVICES: expected a table, one entry for each name",
    ]


def test_the_default_store_does_not_stand_for_one_behind_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # to which a command adds the folder
    monkeypatch.delenv("STEPWELL_STORE", raising=False)
    monkeypatch.setenv("STEPWELL_SERVER", "http://127.0.0.1:1")
    with pytest.raises(InputError, match=r"gc needs the store itself, not the server .* --store"):
        Connection(None).need_store("gc")
    Connection("sqlite:///other.db").need_store("gc")
    monkeypatch.setenv("STEPWELL_STORE", "sqlite:///named.db")
    place = Connection(None)
    place.need_store("gc")
    assert place.where == "sqlite:///named.db"
