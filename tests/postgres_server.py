"""A real PostgreSQL server for the tests: on loopback and a free port, one for a test process, ended by its process id."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from stepwell.stores.postgres.store import PostgresStore

ROOT = Path(__file__).parent.parent
_numbers = count(1)
# What is tested here is not that a disk keeps what it was given: see tests/chaos for servers that crash with fsync on.
QUICK = ("-c", "fsync=off", "-c", "full_page_writes=off")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """A server of its own data folder. `stop` and `start` again as often as a test likes."""

    def __init__(self, *options: str) -> None:
        found = subprocess.run([ROOT / "scripts/postgres"], check=True, capture_output=True, text=True)
        self.programs = Path(found.stdout.strip())
        self.folder = Path(tempfile.mkdtemp(prefix="stepwell-postgres-"))
        self.port = free_port()
        self.options = options
        self.user = self._user()
        self.process: subprocess.Popen[bytes] | None = None
        if self.user is not None:
            shutil.chown(self.folder, self.user)
        self._make_data()
        for last in (False, False, False, True):  # somebody else may take the port before the server does
            try:
                self.start()
                break
            except AssertionError:
                if last:
                    raise
                self.port = free_port()

    def _make_data(self) -> None:
        self._run("initdb", "-D", str(self.folder / "data"), "-U", "stepwell", "-A", "trust", "-E", "UTF8", "--no-sync")

    @staticmethod
    def _user() -> str | None:
        """A server does not run as root."""
        if os.geteuid() != 0:
            return None
        with contextlib.suppress(KeyError):
            import pwd

            return pwd.getpwnam("postgres").pw_name
        return "nobody"

    def _run(self, program: str, *arguments: str) -> None:
        command = [self.programs / program, *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True, user=self.user, cwd=self.folder)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        command = [
            *(self.programs / "postgres", "-D", self.folder / "data", "-p", str(self.port)),
            *(
                "-c",
                "listen_addresses=127.0.0.1",
                "-c",
                f"unix_socket_directories={self.folder}",
                "-c",
                "max_connections=80",
            ),
            *self.options,
        ]
        log = (self.folder / "log").open("ab")
        with log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, user=self.user, cwd=self.folder)
        give_up_at = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                said = (self.folder / "log").read_text(errors="replace")[-2000:]
                assert self.process.poll() is None, f"the server ended: {said}"
                assert time.monotonic() < give_up_at, f"the server does not answer: {said}"
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: at once, in order; SIGQUIT: as if the machine had crashed."""
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(timeout=60)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.stop(signal.SIGQUIT)  # nobody needs what it would still write
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, query: str = "") -> str:
        return f"postgresql://stepwell@127.0.0.1:{self.port}/{database}{query}"

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def new_url(self, database: str = "postgres") -> str:
        """A store that nobody has used: a schema of its own."""
        return self.url(database, f"?schema=test_{next(_numbers)}")


class Standby(PostgresServer):
    """Follows another server, until it is cut off or promoted."""

    def __init__(self, primary: PostgresServer, *options: str) -> None:
        self._primary = primary
        super().__init__(*options)

    def _make_data(self) -> None:
        source = f"host=127.0.0.1 port={self._primary.port} user=stepwell"
        self._run("pg_basebackup", "-D", str(self.folder / "data"), "-d", source, "-R", "-X", "stream", "-c", "fast")

    def catch_up(self, primary: PostgresServer) -> None:
        """Wait until it has all that the other has now."""
        ((place,),) = primary.execute("SELECT pg_current_wal_lsn()::text")
        give_up_at = time.monotonic() + 60
        while self.execute(f"SELECT pg_last_wal_replay_lsn() >= '{place}'::pg_lsn") != [(True,)]:
            assert time.monotonic() < give_up_at, "the standby does not follow"
            time.sleep(0.05)

    def cut_off(self) -> None:
        """It hears nothing any more, and nobody waits for it."""
        self.execute("ALTER SYSTEM SET primary_conninfo = ''")
        self.execute("SELECT pg_reload_conf()")
        give_up_at = time.monotonic() + 60
        while self.execute("SELECT count(*) FROM pg_stat_wal_receiver") != [(0,)]:
            assert time.monotonic() < give_up_at, "the standby still follows"
            time.sleep(0.05)

    def promote(self) -> None:
        assert self.execute("SELECT pg_promote(true, 60)") == [(True,)]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer(*QUICK)
    yield server
    server.close()


def empty(store: PostgresStore) -> None:
    """As if nobody had ever used it."""
    with store._connections.one() as connection:
        schema = store._address.schema
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
        names = ", ".join(f"{schema}.{name}" for (name,) in found if name != "schema_version")
        connection.execute(f"TRUNCATE {names} RESTART IDENTITY".encode())
