"""`http_request` against real servers: what is sent, what comes back, what is tried again."""

from __future__ import annotations

import gzip
import itertools
import resource
import subprocess
import sys
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx
import pytest

from stepwell.base.secret_refs import SecretRef
from stepwell.errors import PermanentError, TransientError
from stepwell.handlers.http.exchange import _origin
from tests.handlers.conftest import Bench
from tests.handlers.servers import Asked, Server, answer

LOOPBACK = ("127.0.0.0/8",)
ROOT = Path(__file__).parents[3]


def ask(server: Server, path: str = "/", **config: Any) -> Any:
    return Bench(private=LOOPBACK).call("http_request", url=server.url + path, **config)


def test_json_becomes_data_and_credentials_of_the_other_side_are_left_out():
    told = answer(200, {"a": [1, None]}, X_Total="7", Set_Cookie="session=abc", WWW_Authenticate="Basic")
    with Server(lambda asked: told) as server:
        bench = Bench(private=LOOPBACK)
        got = bench.call("http_request", url=server.url + "/x?y=1", query={"z": [True, 2], "none": None})
    assert got == {
        "result": {"a": [1, None]},
        "status_code": 200,
        "headers": {"content-type": "application/json", "x-total": "7"},
        "url": server.url + "/x",
        "encoding": "json",
    }
    assert bench.ctx.outcome == {"http": {"status_code": 200}}
    [(name, request, response)] = bench.ctx.recorded
    assert name == "http"
    assert request == {"method": "GET", "url": server.url + "/x?y=1", "query": [["z", "true"], ["z", "2"]]}
    assert response == got
    [asked] = server.asked
    assert asked.target == "/x?y=1&z=true&z=2"
    assert asked.headers["host"] == f"127.0.0.1:{server.port}"
    assert asked.headers["user-agent"].startswith("stepwell/")
    assert {"idempotency-key", "authorization", "content-type", "cookie"}.isdisjoint(asked.headers)


@pytest.mark.parametrize(
    ("body", "content_type", "result", "encoding"),
    [
        (b"gr\xc3\xbcn", "text/plain; charset=utf-8", "grün", "text"),
        (b"gr\xfcn", "text/plain; charset=ISO-8859-1", "grün", "text"),
        (b"gr\xfcn", "text/plain", "Z3L8bg==", "base64"),
        (b"gr\xfcn", "text/plain; charset=rot13", "Z3L8bg==", "base64"),
        (b"a+AOQ-", "text/plain; charset=utf-7", "a+AOQ-", "text"),
        (b"gr\xc3\xbcn", "text/plain; charset=cp500", "grün", "text"),
        (b"\x89PNG\xff", "image/png", "iVBOR/8=", "base64"),
        (b"", "application/json", None, "json"),
        (b"", "", "", "text"),
        (b'\xef\xbb\xbf{"a": 1}', "application/problem+json; charset=utf-8", {"a": 1}, "json"),
        (b'{"a": 1}', "text/plain", '{"a": 1}', "text"),
    ],
)
def test_an_answer_is_read_as_what_it_says_it_is(body, content_type, result, encoding):
    with Server(lambda asked: answer(200, body, content_type)) as server:
        got = ask(server)
    assert (got["result"], got["encoding"]) == (result, encoding)


def test_the_config_says_how_to_read_an_answer():
    with Server(lambda asked: answer(200, b'{"a": 1}', "text/plain")) as server:
        assert ask(server, parse="json")["result"] == {"a": 1}
        assert ask(server, parse="base64")["result"] == "eyJhIjogMX0="
        assert ask(server, parse="text")["result"] == '{"a": 1}'
    with Server(lambda asked: answer(200, b"gr\xfcn", "image/png")) as server:
        assert ask(server, parse="text")["result"] == "gr\ufffdn"


@pytest.mark.parametrize(
    "body",
    [b"{", b'{"a": NaN}', b"\xff\xfe", b"[" * 100_000, b"1" * 5_000, b'{"a": Infinity}'],
    ids=lambda b: repr(b[:9]),
)
def test_json_that_is_none_fails_for_good(body):
    with Server(lambda asked: answer(200, body, "application/json")) as server, pytest.raises(PermanentError) as caught:
        ask(server)
    assert "the answer" in str(caught.value)


def test_unsafe_methods_send_a_key_and_the_body_that_was_given():
    with Server(lambda asked: answer()) as server:
        ask(server, method="post", json={"ä": [1, None]})
        ask(server, method="PUT", form={"a": "1 2", "b": 3})
        ask(server, method="PATCH", body="grün", headers={"content-type": "text/x"})
        ask(server, method="DELETE", headers={"idempotency-key": "mine"})
    post, put, patch, delete = server.asked
    assert (post.body, post.headers["content-type"]) == ('{"ä":[1,null]}'.encode(), "application/json")
    assert (put.body, put.headers["content-type"]) == (b"a=1+2&b=3", "application/x-www-form-urlencoded")
    assert (patch.body, patch.headers["content-type"]) == ("grün".encode(), "text/x")
    assert post.headers["idempotency-key"] == "run-1:node"
    assert delete.headers["idempotency-key"] == "mine"


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 599])
def test_what_may_pass_is_transient(status):
    with (
        Server(lambda asked: answer(status, b"no")) as server,
        pytest.raises(TransientError, match=f"status {status}: no"),
    ):
        ask(server)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422, 304])
def test_other_failures_are_permanent(status):
    with Server(lambda asked: answer(status)) as server, pytest.raises(PermanentError, match=f"status {status}"):
        ask(server)


def test_a_status_that_was_expected_is_no_failure():
    with Server(lambda asked: answer(404, {"missing": True})) as server:
        assert ask(server, expected_status=[404])["result"] == {"missing": True}


def test_a_failure_shows_the_beginning_of_what_was_said_even_if_it_is_no_json():
    told = answer(422, b"<" + b"x" * 1_000, "application/json")
    with Server(lambda asked: told) as server, pytest.raises(PermanentError) as caught:
        ask(server, "/path?token=abc")
    assert str(caught.value) == f"GET {server.url}/path: status 422: <{'x' * 299} ..."


@pytest.mark.parametrize(
    ("told", "wait"),
    [("7", 7), ("0", 0), ("99999999999999", 86_400), ("soon", None), ("-1", None), ("1.5", None), ("", None)],
)
def test_retry_after_in_seconds(told, wait):
    bench = Bench(private=LOOPBACK)
    with Server(lambda asked: answer(429, Retry_After=told)) as server, pytest.raises(TransientError) as caught:
        bench.call("http_request", url=server.url)
    assert caught.value.retry_after == wait
    assert bench.ctx.outcome["http"].get("retry_after") == wait


def test_retry_after_as_a_date_is_relative_to_the_clock_of_the_other_side():
    long_ago = time.time() - 1_000_000
    headers = {"Retry_After": formatdate(long_ago + 12, usegmt=True), "Date": formatdate(long_ago, usegmt=True)}
    with Server(lambda asked: answer(503, **headers)) as server, pytest.raises(TransientError) as caught:
        ask(server)
    assert caught.value.retry_after == 12
    without = {"Retry_After": formatdate(time.time() + 30, usegmt=True)}
    with Server(lambda asked: answer(503, **without)) as server, pytest.raises(TransientError) as caught:
        ask(server)
    assert caught.value.retry_after == pytest.approx(30, abs=2)


def test_a_connection_that_is_reset_refused_or_cut_is_transient():
    with Server(lambda asked: None) as server, pytest.raises(TransientError, match=r"GET http://127.0.0.1:\d+/x: "):
        ask(server, "/x")
    gone = server
    with pytest.raises(TransientError, match=r"Connection refused \(ConnectError\)"):
        ask(gone)
    with Server(lambda asked: answer(200, b"whole")[:-2]) as server, pytest.raises(TransientError):
        ask(server)
    with Server(lambda asked: b"this is no HTTP\r\n\r\n") as server, pytest.raises(TransientError):
        ask(server)


def test_a_name_that_does_not_resolve_is_transient():
    async def nowhere(host: str, port: int) -> list[str]:
        raise OSError(8, "Name or service not known")

    for resolve in (nowhere, _gives([]), _gives(["not an address"])):
        with pytest.raises(TransientError, match=r"the name nowhere\.test"):
            Bench(resolve=resolve).call("http_request", url="http://nowhere.test/")


def _gives(addresses: list[str]) -> Any:
    async def resolve(host: str, port: int) -> list[str]:
        return addresses

    return resolve


# Redirects


def test_redirects_are_followed_as_browsers_do():
    def respond(asked: Asked) -> bytes:
        status, _, rest = asked.path.strip("/").partition("/")
        return answer(int(status), Location="/" + rest) if status.isdigit() else answer(200, {"method": asked.method})

    with Server(respond) as server:
        for status, method in ((301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")):
            got = ask(server, f"/{status}/end", method="POST", json={"a": 1})
            assert got["result"] == {"method": method}
            assert got["url"] == server.url + "/end"
            last = server.asked[-1]
            assert last.body == (b'{"a":1}' if method == "POST" else b"")
            assert ("content-type" in last.headers) == (method == "POST")
        assert ask(server, "/302/302/302/302/302/end")["status_code"] == 200
        with pytest.raises(PermanentError, match="more than 5 times"):
            ask(server, "/302/302/302/302/302/302/end")
        with pytest.raises(PermanentError, match="status 302"):
            ask(server, "/302/end", redirects=0)
        assert ask(server, "/302/end", redirects=0, expected_status=[302])["headers"]["location"] == "/end"


def test_the_port_that_a_scheme_has_is_the_same_host():
    def origin(url: str) -> tuple[str, str, int]:
        return _origin(httpx.URL(url))

    assert origin("http://a.test/x") == origin("http://A.test:80/y")
    assert origin("https://a.test/x") == origin("https://a.test:443/y")
    assert len({origin(url) for url in ("http://a.test", "https://a.test", "http://a.test:81", "http://b.test")}) == 4


@pytest.mark.parametrize("target", ["file:///etc/passwd", "gopher://x/", "javascript:alert(1)", "ftp://x/y"])
def test_a_redirect_to_anything_but_http_is_refused(target):
    with (
        Server(lambda asked: answer(302, Location=target)) as server,
        pytest.raises(PermanentError, match="redirected to"),
    ):
        ask(server)


def test_credentials_do_not_follow_to_another_host():
    with Server(lambda asked: answer(200)) as other:
        with Server(lambda asked: answer(307, Location=other.url + "/there")) as server:
            bench = Bench(private=LOOPBACK, secrets={"K": "swordfish-5"})
            headers = {"X-Key": SecretRef("K"), "Cookie": "a=b", "X-Plain": "yes"}
            bench.call("http_request", url=server.url, method="POST", body="x", headers=headers, bearer=SecretRef("K"))
            first, second = server.asked[0].headers, other.asked[0].headers
            assert (first["x-key"], first["authorization"]) == ("swordfish-5", "Bearer swordfish-5")
            assert {"x-key", "authorization", "cookie", "idempotency-key"}.isdisjoint(second)
            assert second["x-plain"] == "yes"
            assert other.asked[0].body == b"x"
            with pytest.raises(PermanentError, match="body that holds secrets"):
                bench.call("http_request", url=server.url, method="POST", json={"key": SecretRef("K")})
        assert len(other.asked) == 1


# Size and time


def pieces(content: bytes, headers: bytes) -> Any:
    yield b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + headers + b"\r\n\r\n"
    yield content


def test_an_answer_that_is_too_large_is_not_read_to_its_end():
    sent = itertools.count()

    def endless(asked: Asked) -> Any:
        yield b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
        for _ in range(10_000):
            next(sent)
            yield b"x" * 65_536

    with Server(endless) as server, pytest.raises(PermanentError, match="more than 1,000,000 bytes"):
        ask(server, max_bytes=1_000_000)
    assert next(sent) < 1_000
    with (
        Server(lambda asked: answer(200, b"x" * 101)) as server,
        pytest.raises(PermanentError, match="more than 100 bytes"),
    ):
        ask(server, max_bytes=100)
    with Server(lambda asked: answer(200, b"x" * 100)) as server:
        assert ask(server, max_bytes=100)["result"] == "x" * 100


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "x-gzip"])
def test_packed_answers_are_unpacked(encoding):
    packed = gzip.compress(b"hello" * 1_000, mtime=0) + gzip.compress(b"again", mtime=0)
    headers = f"Content-Encoding: {encoding}\r\nContent-Type: text/plain".encode()
    with Server(lambda asked: pieces(packed, headers)) as server:
        got = ask(server)
    assert got["result"] == "hello" * 1_000 + "again"
    assert "content-encoding" not in got["headers"]
    assert server.asked[0].headers["accept-encoding"] == "gzip"


def test_a_packed_answer_may_be_as_large_as_is_allowed():
    with Server(lambda asked: pieces(gzip.compress(b"x" * 1_000, mtime=0), b"Content-Encoding: gzip")) as server:
        assert len(ask(server, max_bytes=1_000)["result"]) == 1_000
        with pytest.raises(PermanentError, match="more than 999 bytes"):
            ask(server, max_bytes=999)


def test_a_bomb_is_unpacked_no_further_than_is_allowed():
    bomb = gzip.compress(b"\0" * 50_000_000, 9, mtime=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    served = Server(lambda asked: pieces(bomb, b"Content-Encoding: gzip"))
    with served as server, pytest.raises(PermanentError, match="more than"):
        ask(server, max_bytes=1_000_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


@pytest.mark.parametrize("encoding", ["gzip, gzip", "deflate", "br", "zstd", "gzip;x", "identity, gzip"])
def test_what_was_not_asked_for_is_not_unpacked(encoding):
    headers = f"Content-Encoding: {encoding}".encode()
    with Server(lambda asked: pieces(b"xxxx", headers)) as server, pytest.raises(PermanentError, match="not asked for"):
        ask(server)


@pytest.mark.parametrize(
    "content", [b"nothing packed", gzip.compress(b"x" * 1_000, mtime=0)[:-9], gzip.compress(b"x", mtime=0) + b"rest"]
)
def test_what_cannot_be_unpacked_fails(content):
    served = Server(lambda asked: pieces(content, b"Content-Encoding: gzip"))
    with served as server, pytest.raises(PermanentError, match="unpacked"):
        ask(server)


def test_head_tells_of_a_body_that_is_not_sent():
    told = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\nContent-Encoding: br\r\nX-A: 1\r\nConnection: close\r\n\r\n"
    )
    with Server(lambda asked: told) as server:
        got = ask(server, method="HEAD")
    assert (got["result"], got["headers"]["x-a"]) == ("", "1")


def test_endless_headers_are_refused():
    def endless(asked: Asked) -> Any:
        yield b"HTTP/1.1 200 OK\r\n"
        for number in range(100_000):
            yield f"X-{number}: {'y' * 1_000}\r\n".encode()

    with Server(endless) as server, pytest.raises(TransientError):
        ask(server)


# What cannot be sent


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"url": "ftp://x"}, "http://"),
        ({"url": "//x"}, "http://"),
        ({"url": "http://"}, "names a host"),
        ({"url": "http://me:you@x/"}, "no user and password"),
        ({"url": "http://x/a b"}, "no blanks"),
        ({"url": "http://x/a\r\nX: y"}, "no blanks"),
        ({"url": "http://x\\@y/"}, "backslash"),
        ({"url": "http://x:99999/"}, "no URL"),
        ({"url": "http://[::1/"}, "no URL"),
        ({"url": "http://x", "headers": {"X": "a\r\nY: b"}}, "one line"),
        ({"url": "http://x", "headers": {"X": "ä"}}, "ASCII"),
        ({"url": "http://x", "headers": {"X: y\r\nZ": "a"}}, "name of a header"),
        ({"url": "http://x", "headers": {"Host": "a"}}, "set by the connection"),
        ({"url": "http://x", "headers": {"Transfer-Encoding": "chunked"}}, "set by the connection"),
        ({"url": "http://x", "headers": {"a": "1", "A": "2"}}, "twice"),
        ({"url": "http://x", "method": "TRACE"}, "expected one of GET"),
        ({"url": "http://x", "method": "GET\r\nX: y"}, "expected one of GET"),
        ({"url": "http://x", "json": 1}, "say method: POST"),
        ({"url": "http://x", "method": "POST", "json": 1, "body": "x"}, "only one"),
        ({"url": "http://x", "max_bytes": 10**12}, "expected at most"),
        ({"url": "http://x", "redirect": 3}, "did you mean 'redirects'"),
        ({}, "this field is missing"),
    ],
)
def test_what_cannot_be_sent_is_refused_at_check_and_before_anything_is_sent(config, told):
    handler = Bench().handlers["http_request"]
    assert any(told in problem.message for problem in handler.check_config(config))
    with pytest.raises(PermanentError):
        handler.validated(config)


def test_a_secret_with_a_line_end_cannot_be_a_header():
    bench = Bench(private=LOOPBACK, secrets={"K": "abcd\r\nX-Evil: 1"})
    with Server(lambda asked: answer()) as server, pytest.raises(PermanentError) as caught:
        bench.call("http_request", url=server.url, headers={"X-Key": SecretRef("K")})
    assert "the header X-Key cannot be sent" in str(caught.value)
    assert "abcd" not in str(caught.value)
    assert server.asked == []


def test_without_httpx_configs_are_checked_and_requests_say_what_to_install():
    code = """
import asyncio, sys
sys.modules["httpx"] = sys.modules["httpcore"] = None
from tests.handlers.conftest import Bench
from stepwell.errors import PermanentError
bench = Bench(private=("127.0.0.1",))
assert bench.handlers["http_request"].check_config({"url": "ftp://x"})
try:
    bench.call("http_request", url="http://127.0.0.1:9/")
except PermanentError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "HTTP needs httpx, which is not installed here: pip install 'stepwell[http]'\n"
