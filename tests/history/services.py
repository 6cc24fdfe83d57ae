"""Bodies that ask a web service through httpx."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx

from stepwell import Context
from stepwell.history.httpx import RecordingTransport


def fetch(url: str, ctx: Context) -> list[Any]:
    secret = {"Authorization": "Bearer very-secret", "X-Api-Key": "another", "Cookie": "session=abc"}
    with httpx.Client(transport=RecordingTransport(), headers=secret) as client:
        first = client.get(f"{url}/json", params={"q": "1"})
        second = client.post(f"{url}/echo", content=b"\xff\x00binary")
        return [first.json(), second.status_code, second.content.hex(), first.headers["x-served"], dict(client.cookies)]


async def fetch_side_by_side(url: str, ctx: Context) -> list[Any]:
    async with httpx.AsyncClient(transport=RecordingTransport()) as client:
        answers = await asyncio.gather(*(client.get(f"{url}/number/{number % 3}") for number in range(6)))
        return [answer.text for answer in answers]


def fetch_compressed(url: str) -> str:
    with httpx.Client(transport=RecordingTransport()) as client:
        return client.get(f"{url}/gzip").text


def fetch_from_nobody() -> str:
    with httpx.Client(transport=RecordingTransport()) as client:
        try:
            return client.get("http://127.0.0.1:9/").text
        except httpx.ConnectError as error:
            return type(error).__name__


def upload(url: str) -> int:
    with httpx.Client(transport=RecordingTransport()) as client:
        return client.post(f"{url}/echo", files={"file": b"content"}).status_code


def fetch_with_password(url: str) -> str:
    with httpx.Client(transport=RecordingTransport()) as client:
        return client.get(url.replace("http://", "http://me:hunter2@") + "/json").text


def post_data(url: str) -> list[Any]:
    with httpx.Client(transport=RecordingTransport(), base_url=url) as client:
        answers = [
            client.post("/echo", json={"a": [1]}),
            client.post("/echo", data={"a": "1", "b": "ü"}),
            client.get("/json", params={"q": ["1", "2"]}),
        ]
        return [each.text for each in answers]


def upload_parts(url: str) -> list[int]:
    """Two uploads that differ in nothing, and one with a boundary of its own."""
    with httpx.Client(transport=RecordingTransport(), base_url=url) as client:
        files = {"file": ("name.txt", b"content", "text/plain")}
        own = {"content-type": "multipart/form-data; boundary=own"}
        answers = [
            client.post("/size", data={"field": "1"}, files=files),
            client.post("/size", data={"field": "1"}, files=files),
            client.post("/size", files=files, headers=own),
        ]
        return [int(each.text) for each in answers]


def stream(url: str) -> list[Any]:
    def content() -> Iterator[bytes]:
        yield b"one"
        yield b"two"

    with httpx.Client(transport=RecordingTransport(), base_url=url) as client:
        echoed = client.post("/echo", content=content(), headers={"content-length": "6"}).text
        with client.stream("GET", "/number/12") as response:
            return [echoed, [part.decode() for part in response.iter_bytes()]]


async def stream_later(url: str) -> list[Any]:
    async def content() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    async with httpx.AsyncClient(transport=RecordingTransport(), base_url=url) as client:
        echoed = (await client.post("/echo", content=content(), headers={"content-length": "6"})).text
        async with client.stream("GET", "/number/12") as response:
            return [echoed, [part.decode() async for part in response.aiter_bytes()]]


async def upload_later(url: str) -> list[int]:
    async with httpx.AsyncClient(transport=RecordingTransport(), base_url=url) as client:
        answers = await asyncio.gather(*(client.post("/size", files={"file": bytes([65 + each])}) for each in range(3)))
        return [int(each.text) for each in answers]


def authenticate(url: str) -> list[Any]:
    with httpx.Client(transport=RecordingTransport(), auth=httpx.DigestAuth("me", "hunter2")) as client:
        return [client.get(f"{url}/digest").text, client.get(f"{url}/digest").status_code]


async def authenticate_later(url: str) -> str:
    async with httpx.AsyncClient(transport=RecordingTransport(), auth=httpx.DigestAuth("me", "hunter2")) as client:
        return (await client.get(f"{url}/digest")).text


async def fetch_in_a_thread(url: str) -> str:
    with httpx.Client(transport=RecordingTransport()) as client:
        return (await asyncio.to_thread(client.get, f"{url}/json")).text


def draw_by_itself(url: str) -> None:
    """The same calls that httpx makes for an upload, made by the body."""
    httpx.Request("POST", url, files={"file": b"content"})
    os.urandom(16)


EVERYTHING = [
    fetch_side_by_side,
    fetch_compressed,
    fetch_with_password,
    post_data,
    upload,
    upload_parts,
    upload_later,
    stream,
    stream_later,
    authenticate,
    authenticate_later,
    fetch_in_a_thread,
]
