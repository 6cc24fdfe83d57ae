"""Hostile JSON: refused with a 4xx, quickly, and nothing is silently changed."""

from __future__ import annotations

import time

import httpx
import pytest

SECONDS = 10.0
"""Ten times what is allowed on a machine that does nothing else."""
START = "/api/v1/workflows/add/runs"
BODIES = {
    "deep lists": b'{"input":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"input":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
    "never closed": b'{"input":' + b"[" * 1_000_000,
    "a key twice": b'{"input":{"a":1,"a":2}}',
    "a field twice": b'{"input":{"a":1},"input":{"a":2}}',
    "NaN": b'{"input":{"a":NaN}}',
    "Infinity": b'{"input":{"a":-Infinity}}',
    "too large a number": b'{"input":{"a":1e999}}',
    "many digits": b'{"input":{"a":' + b"9" * 100_000 + b"}}",
    "half a character": b'{"input":{"a":"\\ud800"}}',
    "half a key": b'{"input":{"\\ud800":1}}',
    "half a character in a tag": b'{"input":{"a":1},"tags":{"t":"\\udfff"}}',
    "NUL in a tag": b'{"input":{"a":1},"tags":{"t":"\\u0000"}}',
    "NUL in an id": b'{"input":{"a":1},"run_id":"\\u0000"}',
    "not UTF-8": b'{"input":{"a":"\xff"}}',
    "empty": b"",
    "no object": b"[1]",
    "null": b"null",
    "an unknown field": b'{"input":{"a":1},"x":1}',
    "a wrong type": b'{"input":[1]}',
    "a large seed": b'{"input":{"a":1},"seed":18446744073709551616}',
    "an endless timeout": b'{"input":{"a":1},"timeout":1e300}',
    "no timeout": b'{"input":{"a":1},"timeout":-1}',
    "many tags": b'{"input":{"a":1},"tags":{' + b",".join(b'"%d":"x"' % n for n in range(10_000)) + b"}}",
    "a long string without an end": b'{"input":"' + b"\\" * 5_000_000,
}


@pytest.mark.parametrize("what", BODIES)
def test_hostile_json_is_refused_quickly(api: httpx.Client, what: str) -> None:
    for path in (START, "/api/v1/workflows", "/api/v1/workflows/check", "/api/v1/bulk/retry"):
        began = time.monotonic()
        answer = api.post(path, content=BODIES[what], headers={"Content-Type": "application/json"})
        took = time.monotonic() - began
        if path.endswith("/check"):
            assert answer.status_code in (200, 400, 422)
            assert answer.status_code != 200 or answer.json()["valid"] is False
        elif path.endswith("/retry"):
            assert answer.status_code in (200, 400, 422)  # a filter may be empty, and then nothing matches
            assert answer.status_code != 200 or answer.json()["done"] == 0
        else:
            assert 400 <= answer.status_code < 500, (path, answer.text[:300])
            assert answer.headers["content-type"] == "application/problem+json"
        assert took < SECONDS


def test_other_content_types_are_refused(api: httpx.Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = api.post(START, content=b'{"input":{"a":1}}', headers={"Content-Type": kind})
        assert 400 <= answer.status_code < 500, kind
        assert api.post("/api/v1/workflows", content=b"{}", headers={"Content-Type": kind}).status_code == 415


@pytest.mark.parametrize("text", ["%00", "%ff", "a%2Fb", "..%2F..", "%F0%9F%92%A9", "x" * 5_000, "%ED%A0%80", "%0a"])
def test_hostile_paths_are_refused(api: httpx.Client, text: str) -> None:
    for path in ("/runs/{}", "/runs/{}/nodes", "/workflows/{}", "/workflows/{}/versions", "/runs/x/nodes/{}"):
        answer = api.get("/api/v1" + path.format(text))
        assert answer.status_code in (200, 400, 404, 414, 422), path
        assert answer.status_code != 200 or answer.json()["items"] == []
    for path in ("/runs?workflow={}", "/runs?tag=a={}", "/runs?since={}", "/runs?cursor={}", "/workers?cursor={}"):
        answer = api.get("/api/v1" + path.format(text))
        assert answer.status_code in (200, 400, 422), path
