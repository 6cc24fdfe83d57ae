"""What is measured in processes of its own: `python -m bench.processes CASE ARGUMENTS` prints one JSON object."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

SMALLEST = """
import tempfile
from stepwell import Builder, Engine

builder = Builder("smallest")
builder.node("only", job="bench.shapes:nothing")
with tempfile.TemporaryDirectory() as folder, Engine(f"sqlite:///{folder}/smallest.db") as engine:
    engine.run(builder)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def wide(folder: str, width: str) -> dict[str, float]:
    """A fan in a fresh process: seconds, and the memory it took at its peak."""
    from stepwell import Engine

    from .shapes import fan

    with Engine(f"sqlite:///{folder}/wide-{width}.db") as engine:
        engine.run(fan(3))
        start = time.perf_counter()
        engine.run(fan(int(width)))
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "megabytes": peak_kilobytes() / 1024}


def peak_kilobytes() -> int:
    """Of this process alone; `getrusage` would count what the parent had when it started this one."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def serve(folder: str, name: str) -> dict[str, float]:
    """Work on all diamonds in a file until none is left, from the moment the file `go` appears."""
    from stepwell import Engine

    from .shapes import Diamond

    settled = 0

    def count(_: object) -> None:
        nonlocal settled
        settled += 1

    while not (Path(folder) / "go").exists():
        time.sleep(0.001)
    with Engine(f"sqlite:///{folder}/shared.db", workflows=[Diamond]) as engine:
        engine.on("node", count)
        (Path(folder) / f"{name}.ready").touch()
        while not (Path(folder) / "done").exists():
            time.sleep(0.005)
    return {"settled": settled}


def service() -> None:
    """Answer every request with a kilobyte of JSON, until the standard input ends. Says first where it can be asked."""
    import threading
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    from .shapes import KILOBYTE

    answer = json.dumps(KILOBYTE).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(answer)}\r\n\r\n".encode()

    class Kilobyte(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self.wfile.write(head + answer)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Kilobyte)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    case, *arguments = sys.argv[1:]
    if case == "service":
        service()
        sys.exit()
    print(json.dumps({"wide": wide, "serve": serve}[case](*arguments)))
