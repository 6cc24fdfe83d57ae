"""A proxy between a client and the server, which cuts a line, delays or trickles what passes."""

import contextlib
import math
import socket
import threading
import time
from collections.abc import Callable

CUT = math.inf
"""Instead of a delay: what came is not passed on, and the line is cut."""


class Proxy:
    """`on_request` and `on_reply` see what passes and say for how many seconds it is held back. With `trickle`, what passes
    does so a few bytes at a time."""

    def __init__(self, port: int) -> None:
        self.to_port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.on_request: Callable[[bytes], float] = lambda _: 0.0
        self.on_reply: Callable[[bytes], float] = lambda _: 0.0
        self.trickle = 0
        self._lines: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.to_port))
            except OSError:
                client.close()
                continue
            self._lines += (client, server)
            for take, give, replies in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pass, args=(take, give, replies), daemon=True).start()

    def _pass(self, take: socket.socket, give: socket.socket, replies: bool) -> None:
        with contextlib.suppress(OSError):
            while data := take.recv(65536):
                seconds = (self.on_reply if replies else self.on_request)(data)
                if seconds == CUT:
                    break
                time.sleep(seconds)
                few = self.trickle or len(data)  # once: it may be changed while this is passed on
                for start in range(0, len(data), few):
                    give.sendall(data[start : start + few])
                    if few < len(data):
                        time.sleep(0.0005)
        for line in (take, give):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for line in self._lines:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()
