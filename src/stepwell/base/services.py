"""What the settings say of services, which documents call by name and so without hosts, and of secrets.

[services.crm]
base_url = "https://crm.example.com/api"
bearer = "secret:CRM_TOKEN"

[secrets]
CRM_TOKEN = { file = "/run/secrets/crm", services = ["crm"] }

Problems show no values: one may be a secret in place of its reference. Importing this module loads pydantic.
"""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlsplit

from annotated_types import MinLen
from pydantic import BeforeValidator, Field, PlainValidator, model_validator

from .forms.reading import Expected, Form, Omittable
from .secret_refs import NAME_PATTERN, PREFIX, SecretRef, references

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


def _text(value: Any) -> str | SecretRef:
    reference = SecretRef.of(value)
    if reference is not None:
        return reference
    if isinstance(value, str) and value.startswith(PREFIX):
        raise ValueError(f"expected letters, digits and _ after {PREFIX}, as in {PREFIX}CRM_TOKEN")
    if not isinstance(value, SecretRef) and not (isinstance(value, str) and value and value.isprintable()):
        raise ValueError(f"expected one line of text, or {PREFIX}NAME")
    return value


def _pair(value: Any) -> Any:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f'expected user and password, as ["stepwell", "{PREFIX}CRM_PASSWORD"]')
    return tuple(value)


def _url(url: Any) -> str:
    if not isinstance(url, str):
        raise ValueError('expected the URL of a service, as "https://..."')
    try:
        parsed = urlsplit(url)
        parsed.port  # noqa: B018  # raises when it is none
    except ValueError:
        raise ValueError("expected a URL whose port, if it has one, is a number") from None
    if parsed.scheme not in ("http", "https") or not parsed.hostname:
        raise ValueError("expected http:// or https:// and a host")
    if parsed.username is not None or parsed.password is not None:
        raise ValueError('expected no user and password in the URL: write basic = ["user", "secret:NAME"]')
    if parsed.query or parsed.fragment or not url.isprintable() or " " in url:
        raise ValueError("expected no query, no fragment and no blanks")
    return url.rstrip("/")


Text = Annotated[str | SecretRef, PlainValidator(_text)]
HeaderName = Annotated[str, Field(pattern=r"^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$"), Expected("the name of a header")]
ServiceName = Annotated[
    str,
    Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,99}$"),
    Expected("the name of a service: up to 100 letters, digits, _ and -"),
]


class Service(Form):
    """The address and credentials of a service."""

    noun = "a service"
    contents = 'a table with at least base_url = "https://..."'
    shows_values = False
    base_url: Annotated[str, PlainValidator(_url)] = Field(description="`http://` or `https://`, a host, and a path")
    bearer: Omittable[Text] = Field(None, description="sent as `Authorization: Bearer ...`")
    basic: Omittable[Annotated[tuple[Text, Text], BeforeValidator(_pair)]] = Field(
        None, description="user and password, in place of `bearer`"
    )
    headers: dict[HeaderName, Text] = Field({}, description="sent with every request")
    query: dict[str, Text] = Field({}, description="sent with every request")
    model: Omittable[Annotated[str, MinLen(1), Expected("the name of a model")]] = Field(
        None, description="what `llm_service` asks for when a document names none"
    )
    private: Omittable[bool] = Field(
        None, description="whether it may be at a private address; one at localhost says so by its URL"
    )

    @model_validator(mode="after")
    def _check(self) -> Service:
        if self.bearer is not None and self.basic is not None:
            raise ValueError("expected either bearer or basic, not both")
        return self

    @property
    def is_private(self) -> bool:
        return urlsplit(self.base_url).hostname in _LOCAL if self.private is None else self.private

    @property
    def references(self) -> tuple[SecretRef, ...]:
        """The secrets it needs."""
        return tuple(references([self.bearer, self.basic, self.headers, self.query]))


def _names(value: Any) -> Any:
    return (
        frozenset(value) if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value) else value
    )


SecretName = Annotated[
    str, Field(pattern=f"^{NAME_PATTERN}$"), Expected("the name of a secret: up to 200 letters, digits, _ . and -")
]


class SecretSource(Form):
    """Where a secret is, and which services it is for."""

    noun = "a secret"
    contents = 'a table that says where the secret is, as { env = "CRM_TOKEN" } or { file = "/run/crm" }'
    shows_values = False
    env: Omittable[Annotated[str, MinLen(1), Expected("the name of a variable")]] = None
    file: Omittable[Annotated[str, MinLen(1), Expected("the path of a file")]] = None
    services: Omittable[Annotated[frozenset[str], BeforeValidator(_names), Expected("a list of names of services")]] = (
        None
    )
    """None: for whatever a document does."""

    @model_validator(mode="after")
    def _check(self) -> SecretSource:
        if self.env is not None and self.file is not None:
            raise ValueError("expected either env or file, not both")
        return self
