"""Bodies that ask a web service through httpx."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from stepwell import Context
from stepwell.replay.httpx import RecordingTransport


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
