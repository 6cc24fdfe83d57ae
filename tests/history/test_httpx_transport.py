"""The transport records every request of a body by itself, without its secrets, and nothing outside of bodies."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from stepwell import Engine
from stepwell.core.model.lines import EFFECT, PAYLOAD
from stepwell.core.store import reader
from stepwell.errors import InputError, ReplayMismatch
from stepwell.history.httpx import RecordingTransport
from tests.engine.conftest import OpenEngine
from tests.history import services
from tests.history.test_effects import ISOLATIONS, run_one


class Service(BaseHTTPRequestHandler):
    requests: list[str]

    def do_GET(self) -> None:
        if self.path.startswith("/number/"):
            self.answer(self.path.removeprefix("/number/").encode())
        elif self.path == "/digest" and "Authorization" not in self.headers:
            challenge = 'Digest realm="shop", nonce="abc", qop="auth", algorithm=MD5'
            self.answer(b"who?", ("WWW-Authenticate", challenge), status=401)
        elif self.path == "/gzip":
            self.answer(gzip.compress(b"compressed"), ("Content-Encoding", "gzip"))
        else:
            self.answer(
                json.dumps({"path": self.path}).encode(), ("Set-Cookie", "session=from-server"), ("X-Served", "yes")
            )

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(str(len(content)).encode() if self.path == "/size" else content)

    def answer(self, content: bytes, *headers: tuple[str, str], status: int = 200) -> None:
        self.server.requests.append(self.path)  # type: ignore[attr-defined]
        self.send_response(status)
        for header in headers:
            self.send_header(*header)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def server() -> Iterator[Any]:
    serving: Any = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    serving.requests = []
    thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield serving
    finally:
        serving.shutdown()
        thread.join()
        serving.server_close()


@pytest.fixture
def url_of_service(server: Any) -> str:
    return f"http://127.0.0.1:{server.server_port}"


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_requests_are_recorded_without_secrets(engine: Engine, url_of_service: str, isolation: Any) -> None:
    run = run_one(engine, services.fetch, isolation, url=url_of_service).check()
    body = run.output("body")
    assert body[:4] == [{"path": "/json?q=1"}, 200, "ff0062696e617279", "yes"]
    assert body[4] == {"session": "from-server"}  # the body gets what is not stored
    first, second = run.effects()
    assert (first.name, second.name) == ("http", "http")
    assert first.request == {
        "method": "GET",
        "url": f"{url_of_service}/json?q=1",
        "body": "",
        "headers": {"accept": "*/*"},
    }
    assert first.response["status"] == 200
    assert json.loads(first.response["body"]) == {"path": "/json?q=1"}
    assert ["x-served", "yes"] in first.response["headers"]
    assert second.request["base64"] == second.response["base64"]
    store = engine.store
    stored = b"".join(
        row.data for kind in (EFFECT, PAYLOAD) for row in reader.list_lines(store, run.id, kind=kind)
    ).lower()
    for secret in (b"very-secret", b"another", b"session", b"authorization", b"cookie"):
        assert secret not in stored


def test_async_requests_side_by_side(engine: Engine, url_of_service: str) -> None:
    run = run_one(engine, services.fetch_side_by_side, url=url_of_service).check()
    assert run.output("body") == ["0", "1", "2", "0", "1", "2"]
    effects = run.effects()
    assert len({each.match for each in effects}) == 6
    assert all(each.awaited for each in effects)


def test_what_is_recorded_is_the_body_and_not_how_it_was_carried(engine: Engine, url_of_service: str) -> None:
    run = run_one(engine, services.fetch_compressed, url=url_of_service).check()
    assert run.output("body") == "compressed"
    (recorded,) = run.effects()
    assert recorded.response["body"] == "compressed"
    assert "content-encoding" not in dict(recorded.response["headers"])


def test_an_error_is_recorded_and_raised(engine: Engine) -> None:
    run = run_one(engine, services.fetch_from_nobody).check()
    assert run.output("body") == "ConnectError"
    (recorded,) = run.effects()
    assert recorded.error is not None
    assert recorded.error.type == "httpx.ConnectError"


def test_an_upload_is_the_same_request_each_time(engine: Engine, url_of_service: str) -> None:
    (first,) = run_one(engine, services.upload, url=url_of_service).effects()
    (second,) = run_one(engine, services.upload, url=url_of_service).effects()
    assert first.match == second.match


def test_a_password_in_a_url_is_not_stored(engine: Engine, url_of_service: str) -> None:
    (recorded,) = run_one(engine, services.fetch_with_password, url=url_of_service).effects()
    assert recorded.request["url"] == f"{url_of_service}/json"


@pytest.mark.parametrize("job", services.EVERYTHING)
def test_a_guarded_body_may_use_it_and_is_replayed_without_the_service(
    open_engine: OpenEngine, server: Any, url_of_service: str, job: Callable[..., Any]
) -> None:
    run = run_one(open_engine(guard=True), job, side_effects="recordable", url=url_of_service).check()
    asked = len(server.requests)
    assert len(run.effects()) == asked > 0
    assert run.replay().effects == asked
    assert len(server.requests) == asked


def test_a_cookie_is_not_stored_so_a_body_that_returns_it_differs(open_engine: OpenEngine, url_of_service: str) -> None:
    run = run_one(open_engine(guard=True), services.fetch, side_effects="recordable", url=url_of_service).check()
    with pytest.raises(ReplayMismatch) as caught:
        run.replay()
    assert caught.value.diff == ('$[4].session: recorded "from-server", now nothing',)


def test_an_error_is_replayed_too(open_engine: OpenEngine) -> None:
    run = run_one(open_engine(guard=True), services.fetch_from_nobody, side_effects="recordable").check()
    assert run.replay().effects == 1


def test_a_guarded_body_that_draws_for_itself_is_refused_beside_httpx(
    open_engine: OpenEngine, url_of_service: str
) -> None:
    error = run_one(open_engine(guard=True), services.draw_by_itself, url=url_of_service).node("body").error
    assert error is not None
    assert error.message.startswith("node 'body' called os.urandom at ")
    assert "through" not in error.message


def test_outside_of_bodies_it_only_sends(server: Any, url_of_service: str) -> None:
    with (
        httpx.Client(transport=RecordingTransport()) as client,
        client.stream("GET", f"{url_of_service}/json") as response,
    ):
        assert not response.is_stream_consumed
        assert json.loads(response.read()) == {"path": "/json"}
    assert server.requests == ["/json"]


def test_it_sends_with_the_transport_it_is_given() -> None:
    inner = httpx.MockTransport(lambda request: httpx.Response(418))
    with httpx.Client(transport=RecordingTransport(inner)) as client:
        assert client.get("http://nowhere/").status_code == 418


@pytest.mark.parametrize("headers", ["accept", b"accept", None, 5, [5], [None]])
def test_headers_are_a_list_of_names(headers: Any) -> None:
    with pytest.raises(InputError, match=r'headers=.*: expected a list of names, as in \["accept"\]'):
        RecordingTransport(headers=headers)


def test_headers_with_secrets_cannot_be_chosen() -> None:
    with pytest.raises(InputError, match="never recorded"):
        RecordingTransport(headers=["Authorization"])


def test_options_go_to_one_transport_only() -> None:
    with pytest.raises(InputError, match="give them to the transport you pass"):
        RecordingTransport(httpx.MockTransport(lambda request: httpx.Response(200)), retries=3)


def test_a_transport_of_the_other_kind_is_refused() -> None:
    transport = RecordingTransport(httpx.AsyncHTTPTransport())
    with httpx.Client(transport=transport) as client, pytest.raises(InputError, match=r"httpx\.AsyncClient only"):
        client.get("http://nowhere/")


def test_a_pure_node_may_not_send(engine: Engine, server: Any, url_of_service: str) -> None:
    run = run_one(engine, services.fetch, url=url_of_service, side_effects="pure")
    error = run.node("body").error
    assert error is not None
    assert 'declared side_effects="pure" and asks for effect' in error.message
    assert server.requests == []
