"""The configs and answers of HTTP handlers. Nothing here needs httpx, so a document can be checked without it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from ...base.secret_refs import SecretRef
from ..strict import Strict

Parse = Literal["auto", "json", "text", "base64"]
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,200}")
_OURS = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)


def _checked_url(url: str) -> str:
    if any(character.isspace() or not character.isprintable() for character in url) or "\\" in url:
        raise ValueError("a URL may hold no blanks, line ends or backslashes")
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  # raises when it is none
    except ValueError as error:
        raise ValueError(f"this is no URL: {error}") from None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise ValueError("expected a URL that begins with http:// or https:// and names a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL may hold no user and password: `basic` takes them, as secret:NAME")
    return url


def checked_headers(headers: Mapping[str, Any]) -> Mapping[str, Any]:
    seen: set[str] = set()
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise ValueError("the name of a header is written with letters, digits and -")
        if name.lower() in _OURS:
            raise ValueError(f"the header {name} is set by the connection")
        if name.lower() in seen:
            raise ValueError(f"the header {name} is there twice")
        seen.add(name.lower())
        if isinstance(value, str) and not (value.isascii() and value.isprintable()):
            raise ValueError(f"the header {name} needs one line of printable ASCII")
    return headers


Method = Annotated[
    Literal["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"],
    BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value),
    Field(description="all but GET, HEAD and OPTIONS send an Idempotency-Key"),
]
Text = str | SecretRef
Scalar = str | int | float | bool | SecretRef | None
Headers = Annotated[dict[str, Text], AfterValidator(checked_headers)]


class Sent(Strict):
    """What every request can say."""

    method: Method = "GET"
    headers: Headers = Field({}, description="one line of text each, or secret:NAME")
    query: dict[str, Scalar | list[Scalar]] = Field({}, description="added to the URL; null leaves a parameter out")
    json_: Any = Field(None, alias="json", description="sent as JSON")
    form: dict[str, Scalar] | None = Field(None, description="sent as a form")
    body: Text | None = Field(None, description="sent as it is")
    parse: Parse = Field("auto", description="how to read the answer; auto goes by its Content-Type")
    expected_status: list[Annotated[int, Field(ge=100, le=599)]] = Field(
        [], description="statuses besides 2xx that are no failure"
    )
    max_bytes: int = Field(10_000_000, ge=1, le=100_000_000, description="of the answer, unpacked")

    @model_validator(mode="after")
    def _one_body(self) -> Sent:
        bodies = {"json": self.json_, "form": self.form, "body": self.body}
        given = [name for name, value in bodies.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)}: only one of them can be sent")
        if given and self.method in ("GET", "HEAD"):
            raise ValueError(f"{self.method} sends no {given[0]}: say method: POST")
        return self


class _WithUrl(BaseModel):
    """What comes first for people comes last among the bases of a model."""

    url: Annotated[str, AfterValidator(_checked_url)] = Field(description="begins with http:// or https://")


class HttpRequest(Sent, _WithUrl):
    bearer: Text | None = Field(None, description="Authorization: Bearer ..., mostly secret:NAME")
    basic: tuple[Text, Text] | None = Field(None, description="user and password, mostly secret:NAME")
    redirects: int = Field(5, ge=0, le=20, description="how many are followed; each is checked as the first URL is")


class HttpResponse(Strict):
    result: Any = Field(description="the body: data if it is JSON, else text, or base64 if it is neither")
    status_code: int = Field(description="200, or another that is no failure")
    headers: dict[str, str] = Field(description="names in lower case; without cookies and credentials")
    url: str = Field(description="what was answered in the end, without its query")
    encoding: Literal["json", "text", "base64"] = Field(description="how `result` was read")
