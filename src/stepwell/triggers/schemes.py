"""How senders of webhooks authenticate: by a secret, or a signature of the raw body."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import NamedTuple

Headers = Mapping[str, str]
"""Names in lower case."""


class Proof(NamedTuple):
    """The credentials in a request, and when it says it was sent."""

    offered: tuple[str, ...]
    """One of these must be as expected; a sender signs with both secrets while one is replaced."""
    sent_at: float | None = None


class Scheme(NamedTuple):
    """One way to authenticate."""

    header: str
    """Where the secret or the signature is."""
    read: Callable[[Headers, str], Proof]
    """Reads the credentials from the headers; gets the name of the header."""
    expect: Callable[[str, bytes, Headers], tuple[str, ...]]
    """The expected values, from the secret, the raw body and the signed headers."""
    timed: bool = False
    """It has a signed time, so old requests are refused."""
    delivery: str | None = None
    """A template of what tells one delivery from another, of what is signed; None: the scheme has nothing for it."""
    settable: tuple[str, ...] = ()
    """Which of `header` and `prefix` may be chosen."""
    signed: bool = True
    """The body is signed. Else it is the secret itself that is sent, and a repeated body says nothing."""


def digest(secret: str | bytes, signed: bytes) -> bytes:
    key = secret.encode() if isinstance(secret, str) else secret
    return hmac.new(key, signed, hashlib.sha256).digest()


def _number(text: str) -> float | None:
    """A time as senders write it: whole seconds since 1970."""
    return float(text) if text.isascii() and text.isdigit() and len(text) <= 12 else None


def _plain(headers: Headers, name: str) -> Proof:
    return Proof((headers[name],) if name in headers else ())


def _bearer(headers: Headers, name: str) -> Proof:
    value = headers.get(name, "")
    kind, _, secret = value.partition(" ")
    if name != "authorization":
        return Proof((value,) if value else ())
    return Proof((secret.strip(),) if kind.lower() == "bearer" else ())


def _hex_or_base64(headers: Headers, name: str) -> Proof:
    """A prefix like `sha256=` is ignored: the sender does not choose the algorithm."""
    return Proof(tuple(value.rpartition("sha256=")[2].strip() for value in _plain(headers, name).offered))


def _expect_hex_or_base64(secret: str, body: bytes, _: Headers) -> tuple[str, ...]:
    made = digest(secret, body)
    return made.hex(), base64.b64encode(made).decode()


def _stripe(headers: Headers, name: str) -> Proof:
    parts = [part.partition("=")[::2] for part in headers.get(name, "").split(",")]
    sent = next((_number(value.strip()) for key, value in parts if key.strip() == "t"), None)
    return Proof(tuple(value.strip() for key, value in parts if key.strip() == "v1"), sent)


def _stripe_sent(headers: Headers) -> str:
    parts = [part.partition("=")[::2] for part in headers.get("stripe-signature", "").split(",")]
    return next((value.strip() for key, value in parts if key.strip() == "t"), "")


def _slack(headers: Headers, name: str) -> Proof:
    return _plain(headers, name)._replace(sent_at=_number(headers.get("x-slack-request-timestamp", "")))


def _standard(headers: Headers, name: str) -> Proof:
    offered = headers.get(name, "").split()
    return Proof(
        tuple(each[3:] for each in offered if each.startswith("v1,")), _number(headers.get("webhook-timestamp", ""))
    )


def _expect_standard(secret: str, body: bytes, headers: Headers) -> tuple[str, ...]:
    signed = f"{headers.get('webhook-id', '')}.{headers.get('webhook-timestamp', '')}.".encode() + body
    key: str | bytes = secret
    if secret.startswith("whsec_"):
        try:
            key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except (binascii.Error, ValueError):
            key = secret
    return (base64.b64encode(digest(key, signed)).decode(),)


def _expect_slack(secret: str, body: bytes, headers: Headers) -> tuple[str, ...]:
    signed = f"v0:{headers.get('x-slack-request-timestamp', '')}:".encode() + body
    return (f"v0={digest(secret, signed).hex()}",)


SCHEMES: Mapping[str, Scheme] = {
    "bearer": Scheme(
        "authorization",
        _bearer,
        lambda secret, body, headers: (secret,),
        delivery="{{ headers['idempotency-key'] }}",
        settable=("header",),
        signed=False,
    ),
    "hmac": Scheme("x-signature-256", _hex_or_base64, _expect_hex_or_base64, settable=("header",)),
    # GitHub does not sign X-GitHub-Delivery: a copy of a delivery may come with another.
    "github": Scheme("x-hub-signature-256", _hex_or_base64, _expect_hex_or_base64),
    "gitlab": Scheme(
        "x-gitlab-token",
        _plain,
        lambda secret, body, headers: (secret,),
        delivery="{{ headers['idempotency-key'] }}",
        signed=False,
    ),
    "stripe": Scheme(
        "stripe-signature",
        _stripe,
        lambda secret, body, headers: (digest(secret, f"{_stripe_sent(headers)}.".encode() + body).hex(),),
        timed=True,
        delivery="{{ body.id }}",
    ),
    "slack": Scheme("x-slack-signature", _slack, _expect_slack, timed=True, delivery="{{ body.event_id }}"),
    "standard": Scheme(
        "webhook-signature", _standard, _expect_standard, timed=True, delivery="{{ headers['webhook-id'] }}"
    ),
}
"""`bearer` and `gitlab` send the secret, the others sign. `standard` is that of standardwebhooks.com."""


def same(offered: tuple[str, ...], expected: tuple[str, ...]) -> bool:
    """Whether an offered value is an expected one, compared in constant time."""
    matches = False
    for each in offered[:10]:
        for right in expected:
            matches |= hmac.compare_digest(each.encode("utf-8", "replace"), right.encode("utf-8"))
    return matches
