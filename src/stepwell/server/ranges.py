"""Bytes that never change: by their hash, whole or in one range."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fastapi import Response

from ..codec import sha256
from .problems import Problem

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})\Z")


def ranged(data: bytes, headers: Mapping[str, str]) -> Response:
    """An answer of JSON bytes, as Range and If-None-Match ask for it."""
    tag = f'"{sha256(data)}"'
    more = {"ETag": tag, "Accept-Ranges": "bytes", "Cache-Control": "private, no-cache"}
    if tag in (part.strip() for part in headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=more)
    asked = _RANGE.match(headers.get("range", ""))
    if asked is None or headers.get("if-range", tag) != tag or asked[1] == asked[2] == "":
        return Response(data, headers=more, media_type="application/json")
    size = len(data)
    if asked[1] == "":
        first, last = max(0, size - int(asked[2])), size - 1
    else:
        first, last = int(asked[1]), min(size - 1, int(asked[2] or size))
    if first > last:
        raise Problem(416, f"the output has {size} bytes", headers={"Content-Range": f"bytes */{size}"})
    more["Content-Range"] = f"bytes {first}-{last}/{size}"
    return Response(data[first : last + 1], 206, more, "application/json")
