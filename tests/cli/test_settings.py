"""Arguments win over the environment, which wins over files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stepwell import InputError
from stepwell.cli.connect import Connection
from stepwell.settings import Settings, read_settings
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


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "stepwell.toml").write_text('stor = "x"\nmax_concurrent_nodes = "many"\nstore = 7\n')
    with pytest.raises(InputError) as told:
        read_settings({}, {"STEPWELL_LEASE_SECONDS": "long"}, tmp_path)
    unknown, *others = str(told.value).splitlines()
    assert unknown.startswith("stepwell.toml: stor: there is no such setting; there are store, max_concurrent_nodes, ")
    assert others == [
        "stepwell.toml: max_concurrent_nodes = 'many': a whole number is needed",
        "stepwell.toml: store = 7: a URL is needed",
        "STEPWELL_LEASE_SECONDS = 'long': a number of seconds is needed",
    ]


def test_modules_are_a_list_or_have_commas_in_between(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.stepwell]\njobs = ["shop.jobs", "shop.mail"]\n')
    assert read_settings({}, {}, tmp_path).jobs == ("shop.jobs", "shop.mail")
    assert read_settings({}, {"STEPWELL_JOBS": "a.b, c"}, tmp_path).jobs == ("a.b", "c")
    assert read_settings({"jobs": ("x",)}, {"STEPWELL_JOBS": "a.b, c"}, tmp_path).for_workers == {"jobs": ("x",)}
    for wrong in ("a:b", "a,,b", "/etc"):
        with pytest.raises(InputError, match="a list of names of modules is needed"):
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
        "stepwell.toml: private_networks = ['everywhere']: a list of networks, as 10.0.0.0/8 or 127.0.0.1:8080 is needed",
        'stepwell.toml: services: crm: base_url = "https://..." is needed',
        "stepwell.toml: services: crm: bearer needs one line of text, or secret:NAME",
        'stepwell.toml: secrets: T: a table is needed that says where the secret is, as { env = "CRM_TOKEN" } or '
        '{ file = "/run/crm" }',
        "STEPWELL_SERVICES: a table is needed, one entry for each service",
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
