"""The schema and its version, roles and passwords."""

import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from stepwell.core.model import ListRuns, Sweep
from stepwell.errors import InputError, SchemaTooNew, StoreError, StoreReadOnly
from stepwell.stores import open_store
from stepwell.stores.postgres.address import parse
from stepwell.stores.postgres.durability import _judged
from stepwell.stores.postgres.schema import VERSION, script
from stepwell.stores.postgres.store import PostgresStore
from tests.postgres_server import PostgresServer


def test_ten_who_open_a_new_schema_at_once_make_it_once(postgres: PostgresServer) -> None:
    url = postgres.new_url()
    found: list[object] = []

    def open_it() -> None:
        try:
            store = PostgresStore(url)
            found.append(store.commit([Sweep()])[0])
            store.close()
        except Exception as error:
            found.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 10
    assert len({repr(each) for each in found}) == 1, found
    count = postgres.execute(f"SELECT count(*) FROM {parse(url).schema}.schema_version")
    assert count == [(1,)]


def test_a_schema_of_a_newer_version_is_refused(postgres: PostgresServer) -> None:
    url = postgres.new_url()
    PostgresStore(url).close()
    postgres.execute(f"UPDATE {parse(url).schema}.schema_version SET number = 900")
    with pytest.raises(SchemaTooNew, match=rf"schema 900, this one knows {VERSION}\): upgrade this installation"):
        PostgresStore(url)


@pytest.mark.parametrize("version", range(1, VERSION))
def test_a_schema_from_before_the_first_release_is_refused(postgres: PostgresServer, version: int) -> None:
    """Schema 1 did not count the skipped parents of nodes, and schema 2 knew no child runs."""
    url = postgres.new_url()
    PostgresStore(url).close()
    postgres.execute(f"UPDATE {parse(url).schema}.schema_version SET number = {version}")
    with pytest.raises(StoreError, match=rf"before the first release \(schema {version}\): use another schema"):
        PostgresStore(url)


@pytest.mark.parametrize("there", ["TABLE {}.run (id integer)", "TYPE {}.ending AS (id integer)"])
def test_a_schema_with_tables_of_others_is_refused_and_stays_as_it_is(postgres: PostgresServer, there: str) -> None:
    url = postgres.new_url()
    schema = parse(url).schema
    postgres.execute(f"CREATE SCHEMA {schema}")
    postgres.execute("CREATE " + there.format(schema))
    with pytest.raises(StoreError, match=r"holds tables of another program.*use another schema"):
        PostgresStore(url)
    tables = postgres.execute(f"SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}'")
    assert tables == [(int(there.startswith("TABLE")),)]


def test_a_role_that_may_not_create_uses_what_another_made(postgres: PostgresServer) -> None:
    url = postgres.new_url()
    schema = parse(url).schema
    postgres.execute(f"CREATE ROLE user_{schema} LOGIN")
    theirs = url.replace("stepwell@", f"user_{schema}@")
    with pytest.raises(StoreReadOnly, match="stepwell migrate --print"):
        PostgresStore(theirs)
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute(script(schema).encode())
    postgres.execute(f"GRANT USAGE ON SCHEMA {schema} TO user_{schema}")
    postgres.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO user_{schema}")
    store = PostgresStore(theirs)
    assert store.read([ListRuns()])[0].runs == ()
    assert store.commit([Sweep()])[0].lost == 0  # type: ignore[union-attr]
    store.close()


def test_a_password_is_never_shown(postgres: PostgresServer, caplog: pytest.LogCaptureFixture) -> None:
    secret = "s3cret /&@: word"
    for url in (
        f"postgresql://stepwell:{quote(secret, safe='')}@127.0.0.1:1/postgres?connect_timeout=2",
        f"postgresql://stepwell@127.0.0.1:1/postgres?password={quote(secret, safe='')}&connect_timeout=2",
        f"postgresql://stepwell:{quote(secret, safe='')}@127.0.0.1:{postgres.port}/nowhere",
        f"postgresql://stepwell:{quote(secret, safe='')}@127.0.0.1:{postgres.port}/postgres?nonsense=1",
        f"mysql://stepwell:{quote(secret, safe='')}@127.0.0.1/postgres",
    ):
        with pytest.raises((StoreError, InputError)) as caught:
            open_store(url)
        shown = f"{caught.value} {caught.value.__cause__} {caplog.text}"
        assert secret not in shown
        assert quote(secret, safe="") not in shown
        assert "s3cret" not in shown
    good = postgres.new_url().replace("stepwell@", f"stepwell:{quote(secret, safe='')}@")
    store = open_store(good)
    assert "s3cret" not in store.url
    store.close()


@pytest.mark.parametrize("query", ["schema=", "schema=pg_mine", "schema=" + "x" * 64, "pooler=session"])
def test_options_that_make_no_sense_are_refused(query: str) -> None:
    with pytest.raises(InputError, match=query.partition("=")[0]):
        open_store(f"postgresql://localhost/db?{query}")


def test_the_name_of_a_schema_may_be_as_long_as_the_server_takes() -> None:
    assert parse("postgresql://localhost/db?schema=" + "x" * 63).schema == "x" * 63


def test_the_command_makes_the_schema_or_shows_what_it_would_do(postgres: PostgresServer) -> None:
    url = postgres.new_url()
    program = [Path(sys.executable).with_name("stepwell"), "--store", url, "migrate"]
    shown = subprocess.run([*program, "--print"], check=True, capture_output=True, text=True).stdout
    assert shown.strip() == script(parse(url).schema).strip()
    assert postgres.execute(f"SELECT count(*) FROM pg_namespace WHERE nspname = '{parse(url).schema}'") == [(0,)]
    done = subprocess.run(program, check=True, capture_output=True, text=True).stdout
    assert done == f"{url} has the schema of this version\n"
    PostgresStore(url, make_schema=False).close()


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ("", "none"),  # the servers of tests have fsync off
        ("-c synchronous_commit=off", "none"),
    ],
)
def test_what_a_commit_survives_is_told_at_the_start(
    postgres: PostgresServer,
    caplog: pytest.LogCaptureFixture,
    options: str,
    kind: str,
) -> None:
    caplog.set_level("INFO", "stepwell.stores")
    store = PostgresStore(f"{postgres.new_url()}&options={quote(options)}")
    assert store.durability.kind == kind
    assert f"store={store.url} durability={kind}" in caplog.text
    store.close()


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ((True, "on", False), "disk"),
        ((True, "off", False), "lagging"),
        ((True, "off", True), "lagging"),
        ((True, "local", True), "disk"),
        ((True, "remote_write", True), "disk"),
        ((True, "remote_apply", True), "standby"),
        ((True, "on", True), "standby"),
        ((False, "on", True), "none"),
    ],
)
def test_durability_is_judged_by_the_settings_of_the_server(settings: tuple[bool, str, bool], kind: str) -> None:
    assert _judged(*settings)[0] == kind


def test_passwords_and_services_of_files_are_libpqs(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = postgres.folder / "data" / "pg_hba.conf"
    rules.write_text("host all keyed 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
    postgres.execute("SELECT pg_reload_conf()")
    postgres.execute("CREATE ROLE keyed LOGIN SUPERUSER PASSWORD 's3cret'")
    address = f"postgresql://keyed@127.0.0.1:{postgres.port}/postgres?schema=keyed"
    with pytest.raises(StoreError, match="password"):
        PostgresStore(address)
    passwords = tmp_path / "passwords"
    passwords.write_text(f"127.0.0.1:{postgres.port}:postgres:keyed:s3cret\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    PostgresStore(address).close()
    services = tmp_path / "services"
    services.write_text(f"[shop]\nhost=127.0.0.1\nport={postgres.port}\nuser=keyed\ndbname=postgres\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    for url in ("postgresql:///?service=shop&schema=keyed", "postgresql://?service=shop&schema=keyed"):
        store = PostgresStore(url)
        assert store.url == url
        store.close()
