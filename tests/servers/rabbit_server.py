"""A RabbitMQ server of the tests' own: Debian's package, on loopback and free ports, in a folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from tests.servers.redis_server import free_port

START_SECONDS = 120.0


class NoRabbit(Exception):
    """There is no RabbitMQ on this machine."""


def programs() -> Path:
    found = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin"))
    if not found:
        raise NoRabbit("found no RabbitMQ: apt-get install rabbitmq-server, or leave it out with --broker Redis")
    return found[-1]


class RabbitServer:
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="stepwell-rabbit-"))
        self.port, self._names, distribution = free_port(), free_port(), free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        cookie = self.folder / ".erlang.cookie"
        cookie.write_text("stepwell")
        cookie.chmod(0o400)
        (self.folder / "enabled_plugins").write_text("[].\n")
        (self.folder / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{self.port}\n")
        self._environment = {
            **os.environ,
            "HOME": str(self.folder),
            "RABBITMQ_NODENAME": f"stepwell{self.port}@localhost",
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 -kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._names),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        with (self.folder / "said").open("ab") as said:
            self._process = subprocess.Popen(
                [programs() / "rabbitmq-server"],
                env=self._environment,
                stdout=said,
                stderr=said,
                cwd=self.folder,
                start_new_session=True,
            )
        end = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise NoRabbit(f"it did not start: {(self.folder / 'said').read_text(errors='replace')[-2_000:]}")
            time.sleep(0.1)

    def _answers(self) -> bool:
        from amqp import Connection

        try:
            with Connection(f"127.0.0.1:{self.port}", connect_timeout=2) as connection:
                connection.connect()
            return True
        except Exception:
            return False

    def queues(self) -> dict[str, int]:
        """Every queue there is, and how many messages are in it."""
        told = subprocess.run(
            [programs() / "rabbitmqctl", "--quiet", "list_queues", "name", "messages", "--no-table-headers"],
            env=self._environment, capture_output=True, text=True, check=True, timeout=START_SECONDS,
        ).stdout  # fmt: skip
        return {name: int(messages) for name, messages in (line.split("\t") for line in told.splitlines() if line)}

    def purge(self) -> None:
        """Every hint is gone."""
        from kombu import Connection

        with Connection(self.url) as connection:
            try:
                connection.default_channel.queue_purge("stepwell.default")
            except Exception as error:
                print(f"nothing was purged: {error}")

    def kill(self) -> None:
        """As a crash of the server."""
        assert self._process is not None
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None:
            self.kill()
        for _ in range(50):  # it refuses as long as it believes that the server lives
            said = subprocess.run(["epmd", "-kill"], env=self._environment, capture_output=True, check=False)
            if said.returncode == 0:
                break
            time.sleep(0.1)
        shutil.rmtree(self.folder, ignore_errors=True)
