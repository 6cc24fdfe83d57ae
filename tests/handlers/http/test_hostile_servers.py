"""Whatever a server answers, a request ends in an answer or in one of two kinds of failure, and nothing else."""

from __future__ import annotations

import codecs
import gzip
import html
import random
from collections import Counter
from urllib.parse import unquote

import pytest

from stepwell.base.secret_refs import SecretRef
from stepwell.errors import PermanentError, TransientError
from tests.handlers.conftest import Bench
from tests.handlers.servers import Asked, Server, answer

FIRST = [b"HTTP/1.1 200 OK"] * 6 + [
    b"HTTP/1.0 200",
    b"HTTP/1.1 302 Found",
    b"HTTP/1.1 429 X",
    b"HTTP/1.1 99 X",
    b"HTTP/1.1 1000 X",
    b"HTTP/1.1 100 Continue",
    b"HTTP/2 200",
    b"ICY 200 OK",
]
BODIES = [
    b'{"a":1}',
    b"\xff\xfe\x00",
    gzip.compress(b'{"b":2}', mtime=0),
    b'"\\ud800"',
    b"[" * 500,
    b"[" * 500 + b"]" * 500,
    b"1e999",
]
BODIES += [b'{"a":1,"a":2}', b"", b"\xef\xbb\xbf1", b'"x""x"', b"-", b"9" * 5_000]
TYPES = [
    b"application/json",
    b"text/plain; charset=utf-16",
    b'text/html; charset="utf-8"',
    b"application/json; charset=\xff",
]
TYPES += [b"image/png", b"", b" ; ;=", b"application/vnd.x+json"]
HEADERS = {
    b"Content-Length": [b"7", b"-1", b"99", b"abc", b"0x10", b"5, 5", b"0"],
    b"Transfer-Encoding": [b"chunked", b"gzip", b"chunked, chunked"],
    b"Content-Encoding": [b"gzip", b"", b"identity", b"gzip, gzip", b"\xff"],
    b"Location": [
        b"/x",
        b"http://[::1",
        b"http://\xff/",
        b"//",
        b"http://a b/",
        b"ht!tp:x",
        b"?",
        b"http://xn--/",
        b"\x00",
    ],
    b"Retry-After": [b"1", b"Mon, 99 Foo 2026", b"1e9", b"\xd9\xa1", b"Wed, 21 Oct 9999999 07:28:00 GMT"],
    b"X\x00": [b"y"],
    b"": [b"y"],
    b" folded": [b"y"],
}


def hostile(chance: random.Random) -> bytes:
    lines = [chance.choice(FIRST)]
    if chance.random() < 0.8:
        lines.append(b"Content-Type: " + chance.choice(TYPES))
    lines += [name + b": " + chance.choice(values) for name, values in HEADERS.items() if chance.random() < 0.1]
    raw = bytearray(b"\r\n".join(lines) + b"\r\n\r\n" + chance.choice(BODIES))
    if chance.random() < 0.1:
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    return bytes(raw[: chance.randrange(len(raw))] if chance.random() < 0.1 else raw)


def test_every_answer_is_one_or_one_of_two_kinds_of_failure() -> None:
    chance = random.Random(7)

    def respond(asked: Asked) -> bytes:
        return hostile(chance)

    ended: Counter[str] = Counter()
    longest = 0
    with Server(respond) as server:
        bench = Bench(private=("127.0.0.0/8",))
        for _ in range(250):
            try:
                bench.call("http_request", url=server.url, parse=chance.choice(["auto", "json", "text", "base64"]))
                ended["answer"] += 1
            except (PermanentError, TransientError) as error:
                ended[type(error).__name__] += 1
                longest = max(longest, len(str(error)))
    assert set(ended) == {"answer", "PermanentError", "TransientError"}, ended
    assert longest < 1_000


def escaped(value: str) -> bytes:
    return "".join(f"\\u{ord(character):04x}" for character in value).encode()


SECRET = "Sword-Fish.7"
ECHOES = {
    "JSON with escapes": b"Content-Type: application/json\r\n\r\n{%b: [%b]}"
    % (b'"' + escaped(SECRET) + b'"', b'"' + escaped(SECRET) + b'"'),
    "JSON as text": b'Content-Type: text/plain\r\n\r\n{"a": "%b"}' % escaped(SECRET),
    "JSON in JSON": b'Content-Type: application/json\r\n\r\n{"a": "{\\"b\\": \\"%b\\"}"}'
    % escaped(SECRET).replace(b"\\", b"\\\\"),
    "name of a header": b"%b: 1\r\n\r\n" % SECRET.encode(),
    "value of a header": b"X: %b\r\n\r\n" % escaped(SECRET),
    "content type": b"Content-Type: application/%b+json\r\n\r\n{" % SECRET.encode(),
    "content encoding": b"Content-Encoding: %b\r\n\r\n{" % SECRET.encode(),
}
REDIRECTS = [f"http://{SECRET}.example/", f"ftp://{SECRET}/"]


@pytest.mark.parametrize("echo", [*ECHOES, *REDIRECTS])
def test_a_secret_that_comes_back_in_another_form_is_masked(echo: str) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise OSError(f"no such host {host}")

    if echo in ECHOES:
        raw = b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + ECHOES[echo]
    else:
        raw = b"HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: %b\r\n\r\n" % echo.encode()
    with Server(lambda asked: raw) as server:
        bench = Bench(private=("127.0.0.0/8",), secrets={"K": SECRET}, resolve=resolve)
        try:
            found = repr(bench.call("http_request", url=server.url, bearer=SecretRef("K")))
        except (PermanentError, TransientError) as error:
            found = str(error)
    told = f"{found} {bench.ctx.recorded} {bench.ctx.outcome}"
    assert "***" in told
    assert SECRET.lower() not in told.lower()
    assert SECRET not in html.unescape(unquote(codecs.decode(told, "unicode_escape")))


def test_a_number_that_is_a_secret_is_masked_however_it_is_written() -> None:
    with Server(lambda asked: answer(200, b"[1234567.8e1]", "application/json")) as server:
        bench = Bench(private=("127.0.0.0/8",), secrets={"K": "12345678"})
        assert bench.call("http_request", url=server.url, bearer=SecretRef("K"))["result"] == ["***"]
