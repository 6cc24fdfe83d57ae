"""A Redis server of the tests' own: on loopback, on a free port, in a folder of its own, ended by its process id."""

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from functools import cache
from pathlib import Path

import redis

ROOT = Path(__file__).parents[2]


class NoServer(Exception):
    """There is no Redis server on this machine."""


@cache
def executable() -> str:
    """Never skipped in silence: `scripts/redis` finds a server, or gets one."""
    found = subprocess.run([ROOT / "scripts" / "redis"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise NoServer(found.stderr.strip())
    return found.stdout.strip()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Refusing:
    """Keeps the port of a server that died, so that nobody else is taken for it: who connects is cut off at once."""

    def __init__(self, port: int) -> None:
        self._listening = socket.create_server(("127.0.0.1", port))
        self._thread = threading.Thread(target=self._refuse, daemon=True)
        self._thread.start()

    def _refuse(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._listening.accept()[0].close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()


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
        self._refusing: Refusing | None = None
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

    @property
    def _port_options(self) -> tuple[str, ...]:
        return "--port", str(self.port)

    def client(self) -> redis.Redis:
        return redis.Redis("127.0.0.1", self.port)

    def start(self) -> None:
        if self._refusing is not None:
            self._refusing.close()
            self._refusing = None
        command = [executable(), *self._port_options, *self._options]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
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
        self._end()
        with contextlib.suppress(OSError):  # somebody was quicker: it is their port now
            self._refusing = Refusing(self.port)

    def _end(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        if self._refusing is not None:
            self._refusing.close()
        if self._process is not None and self._process.poll() is None:
            self._end()
        shutil.rmtree(self.folder, ignore_errors=True)


TLS = Path(__file__).parent / "tls"
"""A certificate of localhost and of the authority that signed it, for tests only; both are valid for a hundred years."""


class TlsServer(RedisServer):
    """Speaks TLS on its port, and nothing else."""

    def __init__(self) -> None:
        files = ("--tls-cert-file", str(TLS / "server.pem"), "--tls-key-file", str(TLS / "server.key"))
        super().__init__(*files, "--tls-ca-cert-file", str(TLS / "authority.pem"), "--tls-auth-clients", "no")

    @property
    def _port_options(self) -> tuple[str, ...]:
        return "--port", "0", "--tls-port", str(self.port)

    def client(self) -> redis.Redis:
        return redis.Redis("127.0.0.1", self.port, ssl=True, ssl_ca_certs=str(TLS / "authority.pem"))


class Sentinel(RedisServer):
    """Watches a server, and makes one of its replicas the master when it dies."""

    def __init__(self, master: RedisServer) -> None:
        self._master = master
        super().__init__()

    def start(self) -> None:
        settings = self.folder / "sentinel.conf"
        settings.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\nsentinel monitor main 127.0.0.1 {self._master.port} 1\n"
            "sentinel down-after-milliseconds main 5000\nsentinel failover-timeout main 20000\n"
        )
        self._options = ("--sentinel", "--logfile", str(self.folder / "log"))
        super().start()

    @property
    def _port_options(self) -> tuple[str, ...]:
        return (str(self.folder / "sentinel.conf"),)
