"""What the guard refuses: names that are not the server's, pages of others, proxies that hide who asks, bodies too large."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from stepwell import Pipeline
from stepwell.core.store import reader
from stepwell.errors import InputError
from stepwell.server.access import callers, guard, sessions, tokens
from stepwell.server.access.guard import MAX_BODY, host_name
from stepwell.server.access.tokens import create_token, revoke_token
from stepwell.server.serving import Serving
from stepwell.stores import open_store
from tests.engine.waiting import eventually
from tests.server.running import ADD, client, running

RUNS = "/api/v1/runs"


@pytest.fixture
def serving(tmp_path: object) -> Iterator[Serving]:
    with running(f"sqlite:///{tmp_path}/guard.db", hosts=["stepwell.example.com"]) as found:
        yield found


def test_loopback_needs_no_token_until_one_is_made(serving: Serving) -> None:
    with client(serving) as api:
        assert api.get(RUNS).status_code == 200
        forwarded = [
            f"X-Forwarded-{what}" for what in ("For", "Proto", "Host", "Port", "Prefix", "Server", "Ssl", "By")
        ]
        for header in (
            *forwarded,
            "X-Forwarded",
            "Forwarded",
            "X-Real-IP",
            "Via",
            "CF-Connecting-IP",
            "True-Client-IP",
            "X-Original-Forwarded-For",
            "X-Cluster-Client-IP",
            "Fastly-Client-IP",
            "X-Envoy-External-Address",
            "X_Forwarded_For",
            "Client-IP",
            "X-Remote-Addr",
            "Remote-User",
            "X-Original-URL",
            "X-Azure-FDID",
            "X-ARR-SSL",
            "X-Vercel-Id",
            "X-AppEngine-User-IP",
            "X-Goog-IAP-JWT-Assertion",
            "X-Auth-Request-User",
            "X-Sucuri-ClientIP",
            "DO-Connecting-IP",
            "Ali-CDN-Real-IP",
            "CF-Ray",
            "CDN-Loop",
            "Tailscale-User-Login",
            "Ngrok-Auth-User-Email",
        ):
            assert api.get(RUNS, headers={header: "1.2.3.4"}).status_code == 401, header
        for header in ("X-Requested-With", "Traceparent", "X-Amzn-Trace-Id", "Idempotency-Key", "User-Agent", "DNT"):
            assert api.get(RUNS, headers={header: "1"}).status_code == 200, header
        text, token = create_token(serving.service.store, ["read"])
        assert api.get(RUNS).status_code == 401
        assert api.get(RUNS, headers={"Authorization": f"Bearer {text}"}).status_code == 200
        assert api.get(RUNS, headers={"Authorization": f"Bearer {text}", "Via": "1.1 proxy"}).status_code == 200
        revoked = revoke_token(serving.service.store, token.id)
        assert revoke_token(serving.service.store, token.id) == revoked  # when it was revoked stays
        assert api.get(RUNS, headers={"Authorization": f"Bearer {text}"}).status_code == 401
        assert api.get(RUNS).status_code == 401  # it is not open again
        for header in ("Basic eDp5", "Bearer", text):
            assert api.get(RUNS, headers={"Authorization": header}).status_code == 401


def test_what_another_process_does_with_tokens_counts_soon(serving: Serving) -> None:
    """Within the second in which a server remembers who asked."""
    other = open_store(serving.service.store.url)
    try:
        with client(serving) as api:
            assert api.get(RUNS).status_code == 200
            text, token = create_token(other, ["read"])
            eventually(lambda: api.get(RUNS).status_code == 401)
            known = {"Authorization": f"Bearer {text}"}
            assert api.get(RUNS, headers=known).status_code == 200
            revoke_token(other, token.id)
            eventually(lambda: api.get(RUNS, headers=known).status_code == 401)
    finally:
        other.close()


def test_who_asks_again_is_not_looked_up_again(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "REMEMBERED_SECONDS", 600.0)
    looked_up: list[str] = []
    find = tokens.find_token
    monkeypatch.setattr(tokens, "find_token", lambda store, text: (looked_up.append(text), find(store, text))[1])
    store = serving.service.store
    text, _ = create_token(store, ["read"])
    with client(serving, text) as api:
        assert [api.get(RUNS).status_code for _ in range(3)] == [200] * 3
    assert looked_up == [text]
    text, _ = create_token(store, ["read"], days=60 / 86_400)
    caller = serving.service.callers._look(find, text)
    assert caller is not None
    assert caller.until - time.monotonic() <= 60, "nobody is remembered for longer than the token is valid"


def test_headers_without_an_end_are_refused(serving: Serving) -> None:
    address = urlsplit(serving.url)
    with socket.create_connection((address.hostname, address.port), 30) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
        received = b""
        try:
            for _ in range(10_000):  # 640 MB, if nobody says stop
                connection.sendall(b"a" * 65_536)
            raise AssertionError("it takes headers of any size")
        except OSError:
            pass
        with contextlib.suppress(OSError):
            received = connection.recv(1_000)
    assert received == b"" or received.startswith(b"HTTP/1.1 431")
    with client(serving) as api:
        long = {"X-Long": "a" * 30_000}
        assert [api.get("/healthz", headers=long).status_code for _ in range(3)] == [200] * 3
        body = {"name": "large", "nodes": [{"id": "x", "handler": "transform", "config": {"template": "a" * 300_000}}]}
        for _ in range(3):  # bodies of one request and heads of the next are not added up
            assert api.post("/api/v1/workflows/check", json=body, headers=long).status_code == 200


def test_a_name_that_is_not_the_servers_is_refused(serving: Serving) -> None:
    port = urlsplit(serving.url).port
    with client(serving) as api:
        for name in ("localhost", f"localhost:{port}", "127.0.0.1", "[::1]:80", "stepwell.example.com", "10.1.2.3"):
            assert api.get(RUNS, headers={"Host": name}).status_code == 200, name
        for name in ("evil.example.com", "localhost.evil.example.com", "a@localhost", "localhost/x", "0.0.0.0", "-"):
            assert api.get(RUNS, headers={"Host": name}).status_code == 421, name
            assert api.get("/healthz", headers={"Host": name}).status_code == 421, name


def test_two_names_or_none_are_refused(serving: Serving) -> None:
    address = urlsplit(serving.url)
    for head in ("Host: localhost\r\nHost: evil.example.com\r\n", ""):
        with socket.create_connection((address.hostname, address.port), 30) as connection:
            connection.sendall(f"GET {RUNS} HTTP/1.1\r\n{head}Connection: close\r\n\r\n".encode())
            assert b"200 OK" not in connection.makefile("rb").readline()


def test_pages_of_other_sites_are_refused(serving: Serving) -> None:
    own = serving.url
    with client(serving) as api:
        assert api.get(RUNS, headers={"Origin": own, "Sec-Fetch-Site": "same-origin"}).status_code == 200
        for origin in ("https://evil.example.com", "null", own.replace("http", "https") + "0", "http://localhost:1"):
            assert api.get(RUNS, headers={"Origin": origin}).status_code == 403, origin
            assert api.post("/api/v1/workflows/a/runs", json={}, headers={"Origin": origin}).status_code == 403
        assert api.get(RUNS, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        assert api.get("/api/v1/events", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        answer = api.request("OPTIONS", RUNS, headers={"Origin": own, "Access-Control-Request-Method": "POST"})
        assert not any(name.startswith("access-control") for name in answer.headers)


def test_a_browser_exchanges_its_token_for_a_cookie(serving: Serving) -> None:
    text, token = create_token(serving.service.store, ["run"])
    own = {"Origin": serving.url}
    with client(serving) as browser:
        assert browser.post("/api/v1/session", headers=own).status_code == 401
        answer = browser.post("/api/v1/session", headers={"Authorization": f"Bearer {text}", **own})
        assert answer.status_code == 200
        told = answer.headers["set-cookie"].lower()
        assert "httponly" in told
        assert "samesite=strict" in told
        assert text not in told
        assert browser.get(RUNS).status_code == 200
        assert browser.get("/api/v1/session").json()["by_cookie"] is True
        assert browser.post(f"{RUNS}/r/retry").status_code == 403  # no page says that it asks
        assert browser.post(f"{RUNS}/r/retry", headers={"Origin": "https://evil.example.com"}).status_code == 403
        assert browser.post(f"{RUNS}/r/retry", headers=own).status_code == 404
        assert browser.post("/api/v1/session", headers=own).status_code == 409
        cookie = dict(browser.cookies)
        assert browser.delete("/api/v1/session", headers=own).status_code == 204
    with client(serving, cookies=cookie) as later:
        assert later.get(RUNS).status_code == 401
    with client(serving) as browser:
        browser.post("/api/v1/session", headers={"Authorization": f"Bearer {text}", **own})
        assert browser.get(RUNS).status_code == 200
        revoke_token(serving.service.store, token.id)
        assert browser.get(RUNS).status_code == 401


def test_a_stream_ends_when_its_browser_logs_out(serving: Serving) -> None:
    text, _ = create_token(serving.service.store, ["read"])
    own = {"Origin": serving.url}
    with client(serving) as browser:
        browser.post("/api/v1/session", headers={"Authorization": f"Bearer {text}", **own})
        with (
            client(serving, text) as api,
            browser.stream("GET", "/api/v1/events") as of_cookie,
            api.stream("GET", "/api/v1/events") as of_token,
        ):
            lines, others = of_cookie.iter_lines(), of_token.iter_lines()
            assert next(lines) == next(others) == "retry: 2000"
            assert browser.delete("/api/v1/session", headers=own).status_code == 204
            began = time.monotonic()
            for _ in lines:
                pass
            assert time.monotonic() - began < 7, "it ended by a heartbeat, not by the logout"
            eventually(lambda: serving.service.feed.streams == 1)  # that of the token goes on


@pytest.mark.parametrize("path", ["/runs/open/events", "/runs/open/logs/events", "/pipelines/blog/events"])
def test_logging_out_ends_every_kind_of_stream(tmp_path: Path, path: str) -> None:
    pipeline = Pipeline("blog", root=tmp_path / "blog")
    with (
        running(f"sqlite:///{tmp_path}/guard.db", pipelines=[pipeline]) as serving,
        client(serving) as api,
        client(serving) as browser,
    ):
        run = {"document": ADD, "input": {"a": 1}, "run_id": "open"}
        assert api.post(RUNS, json=run).status_code == 201  # for which there is no worker
        text, _ = create_token(serving.service.store, ["read"])
        own = {"Origin": serving.url}
        browser.post("/api/v1/session", headers={"Authorization": f"Bearer {text}", **own})
        with browser.stream("GET", f"/api/v1{path}") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "retry: 2000"
            assert browser.delete("/api/v1/session", headers=own).status_code == 204
            began = time.monotonic()
            for _ in lines:
                pass
            assert time.monotonic() - began < 7, "it ended by a heartbeat, not by the logout"


def test_of_several_cookies_one_is_the_session_everywhere(serving: Serving) -> None:
    """A browser sends all that it has for a path. What a stream began with is what logging out ends, and what it ends with."""
    store = serving.service.store
    cookies = []
    for scope in ("read", "run"):
        with client(serving, create_token(store, [scope])[0]) as api:  # type: ignore[list-item]
            cookies += api.post("/api/v1/session").cookies.items()
    both = {"Cookie": "; ".join(f"{name}={text}" for name, text in cookies), "Origin": serving.url}
    with client(serving) as browser:
        assert browser.get("/api/v1/session", headers=both).json()["scopes"] == ["read"]
        with browser.stream("GET", "/api/v1/events", headers=both) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "retry: 2000"
            assert browser.delete("/api/v1/session", headers=both).status_code == 204
            began = time.monotonic()
            for _ in lines:
                pass
            assert time.monotonic() - began < 7, "it ended by a heartbeat, not by the logout"
        assert browser.get("/api/v1/session", headers=both).status_code == 401
        assert sessions.find_session(store, cookies[1][1]) is not None


def test_a_token_opens_so_many_sessions_and_then_the_oldest_ends(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 3)
    store = serving.service.store
    texts = [create_token(store, ["read"])[0] for _ in range(2)]
    cookies: list[dict[str, str]] = []
    for text in (*texts, *[texts[0]] * 4):
        with client(serving, text) as api:
            assert api.post("/api/v1/session").status_code == 200
            cookies.append(dict(api.cookies))
    assert len(list(reader.all_records(store, sessions.KIND))) == 4
    valid = []
    for cookie in cookies:
        with client(serving, cookies=cookie) as browser:
            valid.append(browser.get(RUNS).status_code == 200)
    assert valid == [False, True, False, True, True, True]


def test_a_body_that_is_too_large_is_refused_before_it_is_read(serving: Serving) -> None:
    address = urlsplit(serving.url)
    with socket.create_connection((address.hostname, address.port), 30) as connection:
        head = f"POST /api/v1/workflows HTTP/1.1\r\nHost: localhost\r\nContent-Length: {MAX_BODY + 1}\r\n\r\n"
        connection.sendall(head.encode())
        assert b" 413 " in connection.makefile("rb").readline()

    def parts() -> Iterator[bytes]:
        for _ in range(40):
            yield b" " * 1024 * 1024

    with client(serving) as api:
        try:
            status = api.post("/api/v1/workflows", content=parts()).status_code
        except httpx.TransportError:  # the server has closed the connection while it was being sent
            status = 413
        assert status == 413


@pytest.mark.parametrize("path", ["/api/v1/workflows", "/api/v1/workflows/check", "/api/v1/runs", "/hooks/nobody"])
def test_who_goes_away_while_it_sends_a_body_is_no_error_of_the_server(
    serving: Serving, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    with sending(serving, path, 1_000) as connection:
        connection.sendall(b'{"name":')
        eventually(lambda: serving._server.server_state.tasks)
    eventually(lambda: not serving._server.server_state.connections and not serving._server.server_state.tasks)
    assert caplog.messages == []


@contextlib.contextmanager
def sending(serving: Serving, path: str, size: int) -> Iterator[socket.socket]:
    """A connection on which a request has begun whose body has so many bytes."""
    address = urlsplit(serving.url)
    with socket.create_connection((address.hostname, address.port), 30) as connection:
        kind = "Content-Type: application/json"
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{kind}\r\nContent-Length: {size}\r\n\r\n"
        connection.sendall(head.encode())
        yield connection


def test_all_bodies_together_have_a_limit(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are too many are refused at once, small ones never, and others are taken as soon as there is room."""
    monkeypatch.setattr(guard, "MAX_BODIES", 4_000_000)
    document = json.dumps(ADD).encode() + b" " * 1_500_000
    with client(serving) as api, contextlib.ExitStack() as stack:

        def check() -> httpx.Response:
            headers = {"Content-Type": "application/json"}
            return api.post("/api/v1/workflows/check", content=document, headers=headers)

        for _ in range(2):
            connection = stack.enter_context(sending(serving, "/api/v1/workflows", 2_000_000))
            connection.sendall(b" " * 1_900_000)
        bodies = serving._server.config.app._bodies  # type: ignore[union-attr]
        eventually(lambda: bodies.size > 3_600_000)
        answer = check()
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert "other requests" in answer.json()["detail"]
        assert api.post("/api/v1/workflows/check", json=ADD).status_code == 200
        stack.close()
        eventually(lambda: check().status_code == 200)
        for _ in range(5):  # what a request has taken is given back, whatever became of it
            assert check().status_code == 200
            assert api.post("/api/v1/nothing", content=document).status_code == 404
            assert api.post("/hooks/nobody", content=document).status_code == 413
        eventually(lambda: bodies.size == 0)


def test_answers_have_the_headers_that_keep_browsers_careful(serving: Serving) -> None:
    with client(serving) as api:
        for answer in (api.get(RUNS), api.get("/nothing"), api.get(RUNS, headers={"Host": "evil"})):
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["x-frame-options"] == "DENY"
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["cache-control"] == "no-store"
            assert "server" not in answer.headers


def test_another_address_than_loopback_needs_a_token_first(tmp_path: object) -> None:
    url = f"sqlite:///{tmp_path}/bind.db"
    with pytest.raises(InputError, match="there is no valid token"), running(url, host="0.0.0.0"):
        pass
    from stepwell.stores import open_store

    store = open_store(url)
    create_token(store, ["read"])
    store.close()
    with running(url, host="0.0.0.0") as serving, client(serving) as api:
        assert api.get(RUNS, headers={"Host": "127.0.0.1"}).status_code == 401


@pytest.mark.parametrize(
    ("text", "name"),
    [("a.b:1", "a.b"), ("A.B.", "a.b"), ("[::1]", "::1"), ("a b", None), ("a:x", None), ("", None), ("a?b", None)],
)
def test_the_name_in_a_host_header(text: str, name: str | None) -> None:
    assert host_name(text) == name
