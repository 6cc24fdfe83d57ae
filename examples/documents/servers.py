"""Stand-ins for everything that the documents of this folder call, on one port of this machine.

    python -m examples.documents.servers            # 127.0.0.1:8471, as stepwell.toml says; another port as argument

They behave as services do: a news site that wants to be asked again a second later (429, `Retry-After`), a language model that
takes its time and answers in prose first when it was asked for data, a payment service that charges and then resets the
connection, so that only an idempotency key keeps it from charging twice. `GET /asked` lists what they were asked.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PORT = 8471
KEY = "stand-in-key"
"""What the services want to be told: stepwell.toml names it secret:DEMO_KEY."""
ARTICLE = (
    "Harbour bridge closed for repairs. The bridge will stay closed until Friday, the city said on Monday. "
    "Buses take the tunnel; cyclists are asked to use the ferry, which is free this week."
)
SALES = {"berlin": 1840.5, "lisbon": 2210.0, "oslo": 1399.5}


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, said: str, **headers: str) -> None:
        super().__init__(said)
        self.status = status
        self.headers = headers


class Asked:
    """A request, as the services look at it."""

    def __init__(self, method: str, target: str, headers: Any, body: bytes) -> None:
        parts = urlsplit(target)
        self.method = method
        self.path = parts.path.rstrip("/")
        self.last = self.path.rpartition("/")[2]
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.headers = headers
        self.data: Any = json.loads(body) if body else None

    @property
    def key(self) -> str:
        return str(self.headers.get("Idempotency-Key", ""))


class Services:
    """What the stand-ins know. Everything they do is done once for one idempotency key."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.done: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._met: set[str] = set()
        self._routes: dict[tuple[str, str], Callable[[Asked], Any]] = {
            ("GET", "/news"): self.news,
            ("POST", "/llm/v1/chat/completions"): self.completion,
            ("POST", "/chat/messages"): self.accepted,
            ("POST", "/mail/messages"): self.accepted,
            ("GET", "/shop/orders"): self.order,
            ("GET", "/shop/stock"): lambda asked: {"item": asked.last, "left": 12},
            ("POST", "/payments/charges"): self.charge,
            ("POST", "/carrier/parcels"): self.accepted,
            ("GET", "/sales"): self.sales,
            ("GET", "/registry/companies"): lambda asked: {"company": "Lamps & Co", "employees": 48},
            ("GET", "/registry/people"): lambda asked: {"name": "Ada Lamp", "role": "buyer"},
            ("GET", "/registry/places"): lambda asked: {"city": "Lisbon", "country": "PT"},
            ("POST", "/crm/leads"): self.accepted,
            ("GET", "/ops/incidents"): lambda asked: {"id": asked.last, "service": "checkout", "errors": 412},
            ("GET", "/ops/logs"): lambda asked: ["timeout after 5 s: db-7", "timeout after 5 s: db-7", "retrying"],
            ("GET", "/ops/deploys"): lambda asked: [{"version": "2026.11.2", "minutes_ago": 9}],
            ("POST", "/pager/pages"): self.accepted,
            ("GET", "/asked"): lambda asked: self.asked,
        }

    def answer(self, asked: Asked) -> Any:
        route = self._routes.get((asked.method, asked.path)) or self._routes.get(
            (asked.method, asked.path.rpartition("/")[0])
        )
        if route is None:
            raise Refused(404, f"there is no {asked.method} {asked.path}")
        if not asked.path.startswith(("/news", "/asked")) and asked.headers.get("Authorization") != f"Bearer {KEY}":
            raise Refused(401, "this key is not known")
        if asked.path != "/asked":
            with self._lock:
                self.asked.append(f"{asked.method} {asked.path}")
        return route(asked)

    def news(self, asked: Asked) -> str:
        if self._first_time(asked.path):
            raise Refused(429, "too many readers", **{"Retry-After": "1"})
        return ARTICLE

    def completion(self, asked: Asked) -> dict[str, Any]:
        """Slow, and prose the first time, as models are."""
        time.sleep(0.3)
        messages = asked.data["messages"]
        question = messages[-1]["content"]
        said = "Harbour bridge closed until Friday; take the tunnel or the free ferry."
        if "response_format" in asked.data:
            said = json.dumps({"severity": "high", "team": "database", "reason": "db-7 does not answer in time"})
            if len(messages) == 2:
                said = "This looks like a database problem to me."
        elif question.startswith("A title"):
            said = "Harbour bridge closed"
        usage = {"prompt_tokens": len(question.split()), "completion_tokens": len(said.split())}
        usage["total_tokens"] = sum(usage.values())
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        return {"id": "c-1", "model": asked.data["model"], "choices": [choice], "usage": usage}

    def order(self, asked: Asked) -> dict[str, Any]:
        return {"id": asked.last, "item": "lamp", "price": 19.5, "email": "ada@example.com"}

    def sales(self, asked: Asked) -> float:
        if asked.last not in SALES:
            raise Refused(404, f"there is no shop in {asked.last}")
        if asked.last == "oslo" and self._first_time(asked.path):
            raise Refused(503, "oslo is counting")
        return SALES[asked.last]

    def charge(self, asked: Asked) -> Any:
        """Charges, and the first time nobody hears of it: the connection is reset."""
        paid = self.accepted(asked)
        return None if self._first_time(asked.key) else {**paid, "amount": asked.data["amount"]}

    def accepted(self, asked: Asked) -> dict[str, Any]:
        with self._lock:
            if asked.key not in self.done:
                self.done[asked.key] = {"id": f"{asked.path.split('/')[1]}-{len(self.done) + 1}", "accepted": True}
            return dict(self.done[asked.key])

    def _first_time(self, what: str) -> bool:
        with self._lock:
            known = what in self._met
            self._met.add(what)
            return not known


def server(port: int = PORT) -> ThreadingHTTPServer:
    """All services on one port; 0 takes one that is free."""
    services = Services()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                said = services.answer(Asked(self.command, self.path, self.headers, body))
            except Refused as error:
                self._say(error.status, {"error": str(error)}, error.headers)
                return
            if said is None:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                return
            self._say(200, said, {})

        do_POST = do_GET

        def _say(self, status: int, said: Any, headers: dict[str, str]) -> None:
            text = said if isinstance(said, str) else json.dumps(said)
            body = text.encode()
            self.send_response(status)
            kind = "text/plain; charset=utf-8" if isinstance(said, str) else "application/json"
            for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: `/asked` has it."""

    made = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    made.daemon_threads = True
    return made


if __name__ == "__main__":
    serving = server(int(sys.argv[1]) if len(sys.argv) > 1 else PORT)
    print(f"stand-ins on http://127.0.0.1:{serving.server_port}; Ctrl-C ends them", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        serving.serve_forever()
