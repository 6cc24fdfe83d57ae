"""Webhooks: requests that start runs. Senders have no token; each webhook has a secret."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ..core.store import reader
from ..engine import Engine
from ..errors import InputError, MissingSecret, StepwellError
from ..handlers import Handlers
from ..history.audit_log import Actor, acting_as
from ..triggers.definition import Trigger
from ..triggers.firing import NotHere
from ..triggers.kinds import Webhook
from ..triggers.rendering import Start
from ..triggers.state import RECORD, TriggerState
from ..triggers.webhook import HookRefused, RateLimit, Received, WebhookRequest, receive
from .problems import HttpProblem, log

WRONG_PER_MINUTE = 60
"""Refused requests from one address to one webhook per minute, before it is blocked there for a while."""
UNKNOWN = "there is no such webhook, or its secret or signature is wrong"


class Hooks:
    """The webhooks of one server process."""

    def __init__(self, handlers: Handlers, engine: Engine, worker: Engine | None) -> None:
        self._handlers = handlers
        self._engine = engine
        self._worker = worker
        self._rates = RateLimit(time.monotonic)
        self._wrong = RateLimit(time.monotonic)
        self._known: dict[str, Trigger] = {}
        """By digest: a version never changes."""

    def receive(
        self, name: str, body: bytes, headers: Mapping[str, str], query: Mapping[str, str], client: str
    ) -> Received:
        """Start the run of a request. Without the secret, a sender does not even learn whether the webhook exists."""
        guesser = f"{client} {name}"
        try:
            wait = self._wrong.admit(guesser, WRONG_PER_MINUTE, cost=0)
            if wait is not None:  # also a right guess
                raise HookRefused(429, "too many requests that were refused", wait)
            found = self._find(name)
            if found is None:
                raise HookRefused(401, UNKNOWN)
            trigger, state, when = found
            return receive(
                trigger,
                state,
                WebhookRequest(body, headers, query),
                secret=self._secret(trigger, when),
                start=lambda start: self._start(trigger.name, start),
                now=self._engine.store.now(),
                admit=lambda: self._rates.admit(trigger.name, when.rate_per_minute),
            )
        except HookRefused as error:
            if error.status == 401:
                self._wrong.admit(guesser, WRONG_PER_MINUTE)
            headers_of = {} if error.retry_after is None else {"Retry-After": str(max(1, round(error.retry_after)))}
            raise HttpProblem(
                error.status, str(error) if error.status != 401 else UNKNOWN, headers=headers_of
            ) from None

    def _start(self, name: str, start: Start) -> bool:
        with acting_as(Actor(name, "trigger")):
            return start_by(self._worker, self._engine, start)

    def _find(self, name: str) -> tuple[Trigger, TriggerState, Webhook] | None:
        store = self._engine.store
        row = reader.get_record(store, RECORD, name)
        if row is None:
            return None
        state = TriggerState.decoded(row.value)
        trigger = self._known.get(state.digest)
        if trigger is None:
            if len(self._known) > 1_000:
                self._known.clear()
            trigger = self._known[state.digest] = self._engine.triggers.get(name).trigger
        return None if (hook := trigger.form.hook) is None else (trigger, state, hook)

    def _secret(self, trigger: Trigger, when: Webhook) -> str:
        try:
            return self._handlers.access.secrets.value(when.secret)
        except MissingSecret as error:
            # Only the log names the secret, because anybody may send a request.
            log.error("webhook %s: %s", trigger.name, error)
            raise HookRefused(503, f"the webhook {trigger.name} cannot be checked now", retry_after=60) from None


def start_by(worker: Engine | None, other: Engine, start: Start) -> bool:
    """Start a run by the engine that works here if it can, and else for others to work on."""
    for engine in (worker, other):
        if engine is None:
            continue
        try:
            return engine.triggers.start_run(start)
        except NotHere as error:
            reason: StepwellError = error
    raise InputError(f"{start.workflow} cannot be started here: {reason.public_message}")
