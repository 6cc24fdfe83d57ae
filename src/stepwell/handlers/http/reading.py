"""Reads answers: within the size limit, and by their content type."""

from __future__ import annotations

import base64
import json
import zlib
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from ...base.codec import MAX_DEPTH, decode_strictly
from ...base.masking import holds_secret, mask, mask_any_case
from ...errors import PermanentError
from ...history.effects.record import masked_data
from ...history.httpx import SECRET_HEADERS
from .config import Parse

MAX_RETRY_AFTER = 86_400.0
"""Seconds; longer delays are cut to this."""
# They describe the connection, not the content.
_CARRIAGE = frozenset(
    {"connection", "content-encoding", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
_HIDDEN = SECRET_HEADERS | _CARRIAGE | {"www-authenticate", "proxy-authenticate"}
_CHARSETS = ("utf-8", "utf8", "us-ascii", "iso-8859-1", "latin-1", "windows-1252")
_GZIP = 16 + zlib.MAX_WBITS


async def read_body(response: httpx.Response, max_bytes: int, *, is_head: bool = False) -> bytes:
    """The body of an answer, decompressed. More than `max_bytes`, compressed or not, is an error."""
    if is_head:
        return b""  # its headers speak of a body that is not sent
    length = response.headers.get("content-length", "")
    if length.isdigit() and int(length) > max_bytes:
        raise _too_large(max_bytes)
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        return await _read(response, max_bytes)
    if encoding not in ("gzip", "x-gzip"):
        raise PermanentError(f"the answer is packed as {mask_any_case(encoding)[:40]!r}, which was not asked for")
    return await _unpacked(response, max_bytes)


async def _read(response: httpx.Response, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
    return bytes(body)


async def _unpacked(response: httpx.Response, max_bytes: int) -> bytes:
    body = bytearray()
    unpacker, packed = zlib.decompressobj(_GZIP), 0
    try:
        async for chunk in response.aiter_raw():
            packed += len(chunk)
            while chunk:
                if unpacker.eof:  # one part has ended, another follows
                    unpacker = zlib.decompressobj(_GZIP)
                # One byte more than is allowed tells that there is more, and no bomb gets further than that.
                body += unpacker.decompress(chunk, max_bytes + 1 - len(body))
                if len(body) > max_bytes or packed > max_bytes:
                    raise _too_large(max_bytes)
                chunk = unpacker.unused_data or unpacker.unconsumed_tail
    except zlib.error as error:
        raise PermanentError(f"the answer cannot be unpacked: {error}") from None
    if packed and not unpacker.eof:
        raise PermanentError("the answer cannot be unpacked: it ends too early")
    return bytes(body)


def _too_large(max_bytes: int) -> PermanentError:
    return PermanentError(f"the answer has more than {max_bytes:,} bytes; `max_bytes` in the config allows more")


def parsed(content: bytes, content_type: str, parse: Parse) -> tuple[Any, str]:
    """The answer as data and how it was read: `json`, `text` or `base64`. Secrets in it are masked."""
    kind = content_type.partition(";")[0].strip().lower()
    if parse == "json" or (parse == "auto" and (kind in ("application/json", "text/json") or kind.endswith("+json"))):
        return _json(content, kind), "json"
    if parse == "base64":
        return _base64(content), "base64"
    charset = _charset(content_type)
    try:
        return mask(content.decode(charset)), "text"
    except (UnicodeDecodeError, LookupError):
        if parse == "text":
            return mask(content.decode("utf-8", "replace")), "text"
        return _base64(content), "base64"


def _charset(content_type: str) -> str:
    for part in content_type.split(";")[1:]:
        name, _, value = part.strip().partition("=")
        if name.strip().lower() == "charset":
            chosen = value.strip().strip("\"'").lower()
            return chosen if chosen in _CHARSETS else "utf-8"
    return "utf-8"


def _base64(content: bytes) -> str:
    text = content.decode("latin-1")
    return base64.b64encode(mask(text).encode("latin-1") if holds_secret(text) else content).decode()


def _json(content: bytes, kind: str) -> Any:
    """Masked value by value: a masked text need not be JSON any more."""
    if not content.strip():
        return None
    try:
        text = content.decode("utf-8-sig")
        value = decode_strictly(text)
    except RecursionError:
        raise PermanentError(f"the answer is JSON of more than {MAX_DEPTH} levels") from None
    except ValueError as error:  # no JSON, no UTF-8, or a number of thousands of digits
        said = f"says that it is {mask_any_case(kind)} and" if kind else "was expected to be JSON and"
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "it is no text, or has numbers without end"
        raise PermanentError(f"the answer {said} is not: {reason}. `parse: text` takes it as text") from None
    return masked_data(value)


def shown_headers(response: httpx.Response) -> dict[str, str]:
    """What a document may see of the headers: nothing that is a credential, nothing of the connection."""
    return {mask_any_case(name): mask(value) for name, value in response.headers.items() if name not in _HIDDEN}


def retry_after(headers: httpx.Headers, now: float) -> float | None:
    """How many seconds the other side asks us to wait, as a number or until a date; None if it does not say."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), MAX_RETRY_AFTER)
    try:
        until = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(0.0, until - _its_time(headers, now)), MAX_RETRY_AFTER)


def _its_time(headers: httpx.Headers, now: float) -> float:
    """The time by the server's clock, if it is given: a Retry-After date is relative to that clock."""
    try:
        return parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError, TypeError, OverflowError):
        return now
