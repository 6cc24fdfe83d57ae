"""Webhooks: who sends is proved over the raw bytes, what is too old is refused, and what comes again starts nothing."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest

from stepwell.base.clock import SECOND
from stepwell.errors import InputError
from stepwell.triggers import Trigger
from stepwell.triggers.rendering import Start
from stepwell.triggers.state import TriggerState
from stepwell.triggers.webhook import MAX_BODY, HookRefused, RateLimit, Received, WebhookRequest, receive
from tests.triggers.processes import START, Runs

SECRET = "whsec_" + base64.b64encode(b"a secret of some length").decode()
NOW = START


def hexed(signed: bytes) -> str:
    return hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()


def standard(signed: bytes) -> str:
    return "v1," + base64.b64encode(hmac.new(b"a secret of some length", signed, hashlib.sha256).digest()).decode()


Sign = Callable[[bytes, int], dict[str, str]]
SENDERS: dict[str, Sign] = {
    "bearer": lambda body, at: {"authorization": f"Bearer {SECRET}"},
    "hmac": lambda body, at: {"x-signature-256": hexed(body)},
    "github": lambda body, at: {"x-hub-signature-256": f"sha256={hexed(body)}"},
    "gitlab": lambda body, at: {"x-gitlab-token": SECRET},
    "stripe": lambda body, at: {"stripe-signature": f"t={at},v1={'0' * 64},v1={hexed(f'{at}.'.encode() + body)}"},
    "slack": lambda body, at: {
        "x-slack-request-timestamp": str(at),
        "x-slack-signature": f"v0={hexed(f'v0:{at}:'.encode() + body)}",
    },
    "standard": lambda body, at: {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,wrong {standard(f'msg_1.{at}.'.encode() + body)}",
    },
}
TIMED = ("stripe", "slack", "standard")


class Hook:
    """A webhook, and what comes in."""

    def __init__(self, scheme: str, **options: Any) -> None:
        webhook = {"scheme": scheme, "secret": "secret:HOOK", **options.pop("webhook", {})}
        self.scheme, self.runs = scheme, Runs()
        self.trigger = Trigger("push", "deploy", webhook=webhook, **options)
        self.state = TriggerState(1, self.trigger.digest, 0, 0, 0)

    def post(self, payload: Any = None, at: int = NOW, sent: int | None = None, **changes: Any) -> Received:
        body = json.dumps(payload or {"id": "e1", "event_id": "e1"}).encode()
        headers = {"content-type": "application/json", **SENDERS[self.scheme](body, at if sent is None else sent)}
        headers |= changes.get("headers", {})
        return self.take(changes.get("body", body), headers, at, changes.get("secret", SECRET))

    def take(self, body: bytes, headers: dict[str, str], at: int = NOW, secret: str = SECRET) -> Received:
        request = WebhookRequest(
            body, {name: value for name, value in headers.items() if value is not None}, {"q": "1"}
        )
        return receive(self.trigger, self.state, request, secret=secret, start=self.runs.start, now=at * SECOND)


def refused(post: Callable[[], object], status: int) -> str:
    with pytest.raises(HookRefused) as error:
        post()
    assert error.value.status == status, error.value
    return str(error.value)


@pytest.mark.parametrize("scheme", SENDERS)
def test_a_sender_who_knows_the_secret_starts_a_run_with_its_payload(scheme: str) -> None:
    hook = Hook(scheme, input={"id": "{{ body.id }}", "q": "{{ query.q }}", "at": "{{ fire.time }}"})
    received = hook.post()
    assert received.is_new
    assert hook.runs.started[received.run_id].input == {"id": "e1", "q": "1", "at": "2026-01-01T00:00:00Z"}
    assert hook.runs.started[received.run_id].tags["trigger"] == "push"


@pytest.mark.parametrize("scheme", SENDERS)
def test_whoever_does_not_is_refused_whatever_is_changed(scheme: str) -> None:
    hook = Hook(scheme)
    body = b'{"id": "e1", "event_id": "e1"}'
    good = SENDERS[scheme](body, NOW)
    refused(lambda: hook.take(body, {}), 401)
    refused(lambda: hook.take(body, good, secret=SECRET + "x"), 401)
    refused(lambda: hook.take(body, dict.fromkeys(good, "")), 401)
    refused(lambda: hook.take(body, dict.fromkeys(good, "ä, ö=ü v1, t=1")), 401)
    for name, value in good.items():
        refused(lambda name=name: hook.take(body, {**good, name: None}), 401)  # type: ignore[misc]
        changed = value[:-1] + ("1" if value[-1] != "1" else "2")
        refused(lambda name=name, changed=changed: hook.take(body, {**good, name: changed}), 401)  # type: ignore[misc]
    if scheme not in ("bearer", "gitlab"):
        refused(lambda: hook.take(body + b" ", good), 401)
    assert hook.runs.started == {}


@pytest.mark.parametrize(
    ("scheme", "header", "was", "now"),
    [
        ("stripe", "stripe-signature", ",v1=", ",v0="),
        ("slack", "x-slack-signature", "v0=", "v1="),
        ("slack", "x-slack-signature", "v0=", ""),
        ("standard", "webhook-signature", " v1,", " v2,"),
        ("standard", "webhook-signature", " v1,", " v1a,"),
        ("bearer", "authorization", "Bearer ", "Basic "),
        ("bearer", "authorization", "Bearer ", ""),
    ],
)
def test_a_right_signature_of_another_kind_proves_nothing(scheme: str, header: str, was: str, now: str) -> None:
    body = b'{"id": "e1", "event_id": "e1"}'
    good = SENDERS[scheme](body, NOW)
    changed = good[header].replace(was, now)
    assert changed != good[header]
    refused(lambda: Hook(scheme).take(body, {**good, header: changed}), 401)


def test_what_is_offered_may_be_one_of_several() -> None:
    hook, body = Hook("standard"), b'{"id": 1}'
    good = SENDERS["standard"](body, NOW)
    right = good["webhook-signature"].split()[-1]
    for offered in (right, f"{right} v1,other", f"v1a,other v1,other {right}"):
        assert hook.take(body, {**good, "webhook-signature": offered}).run_id


@pytest.mark.parametrize("scheme", TIMED)
def test_what_was_sent_too_long_ago_or_too_far_ahead_is_refused(scheme: str) -> None:
    hook = Hook(scheme, webhook={"window_seconds": 120})
    assert hook.post(sent=NOW - 120).is_new
    assert "120 seconds" in refused(lambda: hook.post(sent=NOW - 121), 401)
    refused(lambda: hook.post(sent=NOW + 121), 401)
    with pytest.raises(HookRefused):
        hook.take(b"{}", SENDERS[scheme](b"{}", -5))


@pytest.mark.parametrize("scheme", SENDERS)
def test_a_redelivery_answers_with_the_run_that_it_started(scheme: str) -> None:
    hook = Hook(scheme)
    identity = {"x-github-delivery": "d1", "idempotency-key": "d1"}
    first = hook.post(headers=identity)
    later = 0 if scheme == "hmac" else 100
    again = hook.post(at=NOW + later, headers=identity)  # signed anew, as senders do
    assert (first.is_new, again.is_new) == (True, False)
    assert again.run_id == first.run_id
    other = hook.post(
        {"id": "e2", "event_id": "e2"}, headers={**identity, "x-github-delivery": "d2", "idempotency-key": "d2"}
    )
    if scheme != "standard":  # whose id is in a header that is signed
        assert other.is_new
        assert other.run_id != first.run_id


@pytest.mark.parametrize("scheme", sorted(set(SENDERS) - {"bearer", "gitlab"}))
@pytest.mark.parametrize("delivery", [None, "{{ body.id }}"])
def test_nothing_that_is_not_signed_makes_a_copy_a_new_delivery(scheme: str, delivery: str | None) -> None:
    hook = Hook(scheme, input={}, webhook={} if delivery is None else {"delivery": delivery})
    first = hook.post()
    types = ("text/plain", "application/x-www-form-urlencoded", "application/problem+json", "x", None)
    others = [{"content-type": kind} for kind in types] + [
        {name: "another"}
        for name in ("x-github-delivery", "idempotency-key", "webhook-key", "x-request-id", "user-agent")
    ]
    for change in others:
        assert hook.post(headers=change) == (first.run_id, False), change


def test_a_form_is_told_apart_by_its_fields_whatever_its_type_says() -> None:
    hook = Hook("slack", input={}, webhook={"delivery": "{{ body.trigger_id }}"})
    body = b"command=%2Fdeploy&trigger_id=7"
    first = hook.take(body, {"content-type": "application/x-www-form-urlencoded", **SENDERS["slack"](body, NOW)})
    assert hook.take(body, SENDERS["slack"](body, NOW)) == (first.run_id, False)


def test_what_says_that_it_is_json_and_is_not_is_told_apart_as_a_text() -> None:
    """Signed anew at another time, it is the same delivery: by its text, not by its signature."""
    hook = Hook("slack", input={}, webhook={"delivery": "{{ body }}"})
    body = b"{no JSON"
    text = {"content-type": "text/plain"}
    first = hook.take(body, {**text, **SENDERS["slack"](body, NOW)})
    assert hook.take(body, {**text, **SENDERS["slack"](body, NOW + 5)}, NOW + 5) == (first.run_id, False)
    assert hook.take(b"{other", {**text, **SENDERS["slack"](b"{other", NOW)}).is_new


def test_without_an_id_the_same_signed_bytes_are_one_delivery_and_with_a_plain_secret_each_is_new() -> None:
    signed, plain = Hook("github"), Hook("bearer")
    assert signed.post().run_id == signed.post().run_id
    assert signed.post({"id": "other"}).is_new
    assert plain.post().run_id != plain.post().run_id


def test_what_tells_deliveries_apart_can_be_chosen() -> None:
    hook = Hook("hmac", webhook={"delivery": "{{ body.order.number }}"})
    first = hook.post({"order": {"number": 7}, "try": 1})
    assert hook.post({"order": {"number": 7}, "try": 2}) == Received(first.run_id, False)
    assert hook.post({"order": {"number": 8}}).is_new
    assert "body.order.number" in refused(lambda: hook.post({"order": {}}), 422)


def test_the_secret_never_reaches_a_run() -> None:
    for scheme in SENDERS:
        hook = Hook(scheme, input={"headers": "{{ headers }}"})
        received = hook.post(headers={"cookie": "session=1", "x-other": "seen"})
        given = hook.runs.started[received.run_id].input["headers"]
        assert given["x-other"] == "seen"
        assert SECRET not in json.dumps(given)
        assert not {"authorization", "cookie", "x-gitlab-token"} & given.keys()


BODIES = [
    (b"{", "application/json", 400),
    (b'{"a": NaN}', "application/json", 400),
    (b'{"a": 1e999}', "application/json", 400),
    (b'{"a": "\\ud800"}', "application/json", 400),
    (b'{"a": 1, "a": 2}', "application/json", 400),
    (b"[" * 50_000 + b"]" * 50_000, "application/json", 400),
    (b"1" * 5_000, "application/json", 400),
    (b"\xff\xfe", "text/plain", 400),
    (b"a=1&" * 2_000, "application/x-www-form-urlencoded", 400),
    (b"[1, 2]", "application/json", 422),  # an input is an object
    (b"hello", "text/plain", 422),
    (b" " * (MAX_BODY + 1), "text/plain", 413),
]


@pytest.mark.parametrize(("body", "kind", "status"), BODIES, ids=range(len(BODIES)))
def test_hostile_payloads_are_refused_and_start_nothing(body: bytes, kind: str, status: int) -> None:
    hook = Hook("hmac")
    refused(lambda: hook.take(body, {"content-type": kind, **SENDERS["hmac"](body, NOW)}), status)
    assert hook.runs.started == {}


def test_forms_and_texts_are_payloads_too() -> None:
    hook = Hook("hmac", input={"got": "{{ body }}"})
    for body, kind, got in (
        (
            b"text=hi&user=a%20b&text=bye",
            "application/x-www-form-urlencoded; charset=utf-8",
            {"text": "bye", "user": "a b"},
        ),
        (b"plain", "text/plain", "plain"),
        (b'{"a": 1}', "application/vnd.github+json", {"a": 1}),
        (b'{"a": 2}', "", {"a": 2}),
        (b" [2]", "", [2]),
        (b'{"a": 3}', "text/plain", '{"a": 3}'),
        (b'{"a": 4}', "Application/JSON; charset=utf-8", {"a": 4}),
        (b"a=5", "", "a=5"),
        (b"", "application/x-www-form-urlencoded", {}),
        (b"", "application/json", {}),
    ):
        received = hook.take(body, {"content-type": kind, **SENDERS["hmac"](body, NOW)})
        assert hook.runs.started[received.run_id].input == {"got": got}


def test_an_input_that_the_workflow_refuses_is_told_to_the_sender() -> None:
    hook = Hook("hmac", input={"n": "{{ body.missing }}"})
    refused(hook.post, 422)

    def start(asked: Start) -> bool:
        raise InputError("the input of deploy does not fit")

    hook.runs.start = start  # type: ignore[method-assign]
    hook.trigger = Trigger("push", "deploy", webhook={"secret": "secret:HOOK"})
    assert "does not fit" in refused(hook.post, 422)


def test_a_paused_webhook_asks_to_come_again() -> None:
    hook = Hook("hmac")
    hook.state = hook.state.changed(paused=True)
    refused(hook.post, 503)
    refused(lambda: hook.post(secret="wrong-secret"), 401)


def test_requests_are_limited_and_come_back_with_time() -> None:
    now = [0.0]
    limit = RateLimit(lambda: now[0])
    assert [limit.admit("a", 60) for _ in range(10)] == [None] * 10
    wait = limit.admit("a", 60)
    assert wait == pytest.approx(1.0)
    assert limit.admit("b", 60) is None
    now[0] += 1.01
    assert limit.admit("a", 60) is None
    assert limit.admit("a", 60) is not None
    now[0] += 1_000
    assert [limit.admit("a", 60) for _ in range(11)].count(None) == 10
