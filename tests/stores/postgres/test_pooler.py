"""Behind a real pooler in transaction mode (pgbouncer): no session of our own, no notifications, the same results."""

import logging
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell import Engine
from tests.conformance.audit import audit
from tests.postgres_server import PostgresServer, free_port
from tests.stores.postgres.children import Noted


def pgbouncer() -> str:
    """The program: what is installed, else Debian's package when root."""
    places = f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
    if shutil.which("pgbouncer", path=places) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-qq", "-y", "pgbouncer"], check=False, capture_output=True)
    found = shutil.which("pgbouncer", path=places)
    if found is None:
        pytest.skip("NOT TESTED: there is no pgbouncer here, and only root can install Debian's")
    return found


@pytest.fixture
def pooled(postgres: PostgresServer, tmp_path: Path) -> Iterator[str]:
    port, folder = free_port(), postgres.folder / "pooler"
    folder.mkdir()
    if postgres.user is not None:
        shutil.chown(folder, postgres.user)
    (folder / "pgbouncer.ini").write_text(f"""
[databases]
postgres = host=127.0.0.1 port={postgres.port} dbname=postgres user=stepwell
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
""")
    process = subprocess.Popen(
        [pgbouncer(), folder / "pgbouncer.ini"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=postgres.user,
        cwd=folder,
    )
    time.sleep(0.5)
    yield f"postgresql://stepwell@127.0.0.1:{port}/postgres?schema=pooled&pooler=transaction"
    process.send_signal(signal.SIGINT)
    process.wait(20)
    shutil.rmtree(folder)


def test_runs_complete_behind_a_pooler(pooled: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ledger = str(tmp_path / "ledger")
    with caplog.at_level(logging.INFO, "stepwell"), Engine(pooled, workflows=[Noted]) as engine:
        runs = list(engine.start_many(Noted(ledger=ledger) for _ in range(30)))
        for run in runs:
            run.wait(30)
            assert run.output("last") == 5
        audit(engine.store)
    assert sum("polls" in record.message for record in caplog.records) == 1
