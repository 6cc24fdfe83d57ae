"""A Redis server of the tests' own: on loopback, on a free port, in a folder of its own, ended by its process id."""

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import redis


class NoServer(Exception):
    """There is no Redis server on this machine."""


def executable() -> str:
    """Never skipped in silence: `scripts/setup dev` looks for a server, and installs one where it may."""
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found is None:
        raise NoServer(
            "found no redis-server or valkey-server: run scripts/setup dev as root, or install one (7.0 or newer)"
        )
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RedisServer:
    def __init__(self, *options: str, appendfsync: str = "everysec") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="stepwell-redis-"))
        self.port = free_port()
        self._options = (
            *("--bind", "127.0.0.1", "--dir", str(self.folder), "--save", "", "--appendonly", "yes"),
            *("--appendfsync", appendfsync, "--logfile", str(self.folder / "log"), "--enable-debug-command", "yes"),
            *options,
        )
        self._process: subprocess.Popen[bytes] | None = None
        for last in (False, False, False, False, True):  # somebody else may take the port before the server does
            try:
                self.start()
                break
            except NoServer:
                if last:
                    raise
                self.port = free_port()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> redis.Redis:
        return redis.Redis("127.0.0.1", self.port)

    def start(self) -> None:
        command = [executable(), "--port", str(self.port), *self._options]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while True:
            try:
                with self.client() as client:
                    if client.info("server")["process_id"] == self._process.pid:  # and not somebody else on this port
                        return
                if self._process.poll() is not None:
                    raise NoServer(f"port {self.port} is taken")
                time.sleep(0.02)
            except (redis.ConnectionError, redis.BusyLoadingError):
                if self._process.poll() is not None or time.monotonic() > end:
                    log = self.folder / "log"
                    raise NoServer(f"{command} did not start: {log.read_text() if log.exists() else ''}") from None
                time.sleep(0.02)

    def kill(self) -> None:
        """As a crash of the server: it can write nothing more."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
