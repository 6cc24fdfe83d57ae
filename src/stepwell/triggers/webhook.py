"""Receives webhooks: authenticates them, recognises repeated deliveries, and starts their runs."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

from ..base.clock import SECOND
from ..base.codec import encode
from ..base.ids import time_ordered
from ..base.templates import Missing, compile_template
from ..core.graph.check import GraphProblem
from ..core.graph.parse import parse
from ..errors import GraphError, InputError, StepwellError
from .definition import Trigger
from .firing import Starter
from .rendering import make_start
from .schemes import SCHEMES, Headers, same
from .state import TriggerState

if TYPE_CHECKING:
    from .kinds import Webhook

MAX_BODY = 1024 * 1024
HIDDEN = ("authorization", "cookie", "proxy-authorization")
"""Headers that no template sees, besides the one with the secret or the signature."""


class WebhookRequest(NamedTuple):
    """What came in: the raw body, and headers with names in lower case."""

    body: bytes
    headers: Headers
    query: Mapping[str, str]


class Received(NamedTuple):
    run_id: str
    is_new: bool
    """False: this delivery came before, and started that run then."""


class HookRefused(StepwellError):
    """A request to a webhook is refused. `status` is that of HTTP; `retry_after` in seconds if it may come again."""

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


def receive(
    trigger: Trigger,
    state: TriggerState,
    request: WebhookRequest,
    *,
    secret: str,
    start: Starter,
    now: int,
    admit: Callable[[], float | None] = lambda: None,
) -> Received:
    """Start the run of a request, or find the one that the same delivery started before.

    `admit` is called for authenticated requests; it returns seconds to wait if there were too many.
    """
    when = trigger.form.hook
    assert when is not None
    if len(request.body) > MAX_BODY:
        raise HookRefused(413, f"the body has {len(request.body):,} bytes; at most {MAX_BODY:,} are taken")
    sent_at = check_sender(when, request, secret, now)
    if state.paused:
        raise HookRefused(503, f"the webhook {trigger.name} is paused", retry_after=60)
    wait = admit()
    if wait is not None:
        raise HookRefused(429, f"too many requests: {when.rate_per_minute} a minute are taken", retry_after=wait)
    body = read_body(request)
    shown_headers = {name: value for name, value in request.headers.items() if name not in (*HIDDEN, _header(when))}
    names = {"body": body, "headers": shown_headers, "query": dict(request.query)}
    run_id = f"{trigger.name}:{_delivery(when, request, names, sent_at)}"
    try:
        made = make_start(trigger, state, run_id, now, names)
    except StepwellError as error:
        raise HookRefused(422, f"no input can be made of this: {error.public_message}") from None
    try:
        return Received(run_id, start(made))
    except InputError as error:
        raise HookRefused(422, error.public_message) from None


def check_sender(when: Webhook, request: WebhookRequest, secret: str, now: int) -> float | None:
    """Refuse a request without the right secret; returns when it was sent, if the scheme has a time."""
    scheme = SCHEMES[when.scheme]
    proof = scheme.read(request.headers, _header(when))
    expected = scheme.expect(secret, request.body, request.headers)
    if not same(proof.offered, expected):
        raise HookRefused(401, f"the secret or signature in {_header(when)} is missing or wrong")
    if not scheme.timed:
        return None
    if proof.sent_at is None or abs(now / SECOND - proof.sent_at) > when.window_seconds:
        raise HookRefused(401, f"it was not sent within the last {when.window_seconds:g} seconds")
    return proof.sent_at


def read_body(request: WebhookRequest) -> Any:
    """The payload: JSON as data, a form as an object of texts, anything else as text. HookRefused if it is broken."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        text = request.body.decode("utf-8")
    except UnicodeDecodeError:
        raise HookRefused(400, "the body is no UTF-8 text") from None
    if kind == "application/x-www-form-urlencoded":
        return _form(text)
    if kind == "application/json" or kind.endswith("+json") or (not kind and _looks_like_json(text)):
        return _json(text)
    return text


def _looks_like_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def _form(text: str) -> dict[str, str]:
    try:
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=1_000)
    except ValueError as error:
        raise HookRefused(400, f"the form cannot be read: {error}") from None
    return {name: values[-1] for name, values in fields.items()}


def _signed_body(request: WebhookRequest) -> Any:
    """The payload as its own bytes say what it is: nobody signs the Content-Type, so a copy may come with another."""
    text = request.body.decode("utf-8")
    with suppress(HookRefused):  # then it is a text
        return _json(text) if _looks_like_json(text) else _form(text) if "=" in text else text
    return text


def _json(text: str) -> Any:
    """JSON without surprises: not too deep, no key twice, no NaN, no half of a character."""
    problems: list[GraphProblem] = []
    try:
        found = parse(text, problems) if text.strip() else {}
        encode(found)
    except (GraphError, InputError) as error:
        problem = error.problems[0] if isinstance(error, GraphError) else error
        raise HookRefused(400, f"the body is refused: {problem}") from None
    if problems:
        raise HookRefused(400, f"the body is refused: {problems[0]}")
    return found


def _header(when: Webhook) -> str:
    return when.header or SCHEMES[when.scheme].header


def _delivery(when: Webhook, request: WebhookRequest, names: Mapping[str, Any], sent_at: float | None) -> str:
    """Identifies a delivery, as a part of a run id: by the sender's id for it, or by what was signed."""
    scheme = SCHEMES[when.scheme]
    template = when.delivery or scheme.delivery
    found: Any = None
    if template is not None:
        if scheme.signed:
            names = {**names, "body": _signed_body(request)}
        try:
            found = compile_template(template).render(names)
        except Missing:
            if when.delivery is not None:
                raise HookRefused(422, f"the delivery is told apart by {when.delivery}, which is missing") from None
    if found not in (None, ""):
        identity = b"id\0" + json.dumps(found, sort_keys=True).encode()
    elif scheme.signed:
        # The same bytes under the same signature are the same delivery, or a copy that cannot be told from it.
        identity = f"body\0{sent_at}\0".encode() + request.body
    else:
        return time_ordered()
    return "hook-" + hashlib.sha256(identity).hexdigest()[:32]


class RateLimit:
    """Limits requests per minute, with bursts of ten seconds' worth. Counts in this process only."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def admit(self, name: str, per_minute: int, cost: int = 1) -> float | None:
        """None, or the seconds after which to come again. With `cost=0` it is only asked, and nothing is counted."""
        burst = max(1.0, per_minute / 6)
        with self._lock:
            now = self._now()
            if len(self._left) > 10_000:  # requests from ever new addresses must not fill the memory
                self._left.clear()
            left, at = self._left.get(name, (burst, now))
            left = min(burst, left + (now - at) * per_minute / 60)
            wait = (1 - left) * 60 / per_minute if left < 1 else None
            if cost:
                self._left[name] = (left if wait is not None else left - cost, now)
            return wait
