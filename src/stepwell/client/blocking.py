"""`BlockingClient`: the verbs of an engine, for a server's runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from ..base.clock import Duration
from ..base.ids import RunId, new_run_id
from ..base.words import shown
from ..core.graph import to_frozen
from ..core.store import Store
from ..define import Builder, Workflow
from ..define.document import Document
from ..engine import Engine, Run
from ..engine.checking import checked_changes, checked_limit, checked_list, checked_seconds
from ..engine.documents import Documents
from ..engine.shared_calls import SharedCalls
from ..engine.starting import Startable, StartOptions
from ..errors import InputError
from ..handlers import Handler, Handlers
from .events import Event, follow, path_of_events
from .remote import RemoteRequests, RemoteStore, RemoteWaiting
from .transport import SECONDS, Transport, path_of
from .triggers import RemoteTriggers

if TYPE_CHECKING:
    from ..engine.runs.requests import Requests
    from ..engine.waiting import Waiting

_OFFERED = (
    "adopt", "close", "compare", "events", "get", "run", "runs", "save", "start", "start_many", "triggers", "wait", "workflows",
)  # fmt: skip
"""What people type after `client.`"""


class BlockingClient(SharedCalls):
    """All that a client does for threads; `Client` can also be entered by coroutines."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        jobs: Iterable[str] = (),
        handlers: Handlers | Iterable[Handler | str] = (),
        timeout: Duration = SECONDS,
    ) -> None:
        self.transport = Transport(url, token, checked_seconds("timeout", timeout, positive=True))
        self.store: Store = RemoteStore(self.transport)
        # It has no runner: it keeps graphs that were read, and finds code for what needs some.
        engine = Engine(self.store, runner=None, jobs=jobs, handlers=handlers)
        self.code, self.checkpoint_keys = engine.code, engine.checkpoint_keys
        # A `Run` and the shared calls need only these two of an engine.
        self.requests = cast("Requests", RemoteRequests(self.transport, self.store, self.code))
        self.waiting = cast("Waiting", RemoteWaiting(self.transport, self.store))
        self.documents: Documents = engine.documents
        self.triggers = RemoteTriggers(self.transport)
        """The triggers of the server, with the methods of `engine.triggers`."""

    def __repr__(self) -> str:
        return f"<Client {self.transport.url}>"

    def __dir__(self) -> list[str]:
        return [*_OFFERED]

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self, timeout: Duration | None = None) -> None:
        self.transport.close()

    # Starting

    def start(
        self,
        workflow: Startable,
        *,
        input: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        idempotency_key: str | None = None,
        priority: int = 0,
        deadline: Duration | None = None,
        seed: int | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Run:
        """Start a run; it is durable when this returns.

        A text names a stored document, or a class that the server's workers have. A Builder or a Document is sent as data, an
        instance of a class as its name and its input.
        """
        # An id of our own makes it safe to ask again when the answer is lost.
        chosen = run_id if run_id is not None or idempotency_key is not None else new_run_id()
        asked: dict[str, Any] = {
            "run_id": chosen,
            "priority": priority,
            "deadline": checked_limit("deadline", deadline, positive=True),
            "seed": seed,
            "tags": None if tags is None else dict(tags),
        }
        body = {name: value for name, value in asked.items() if value is not None}
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        path, more = _startable(workflow, checked_changes(input))
        found = self.transport.ask("POST", path, body={**body, **more}, headers=headers, repeatable=True)
        return Run(self, RunId(found["id"]))

    def run(
        self,
        workflow: Startable,
        *,
        check: bool = True,
        wait: Duration | None = None,
        input: Mapping[str, Any] | None = None,
        **options: Unpack[StartOptions],
    ) -> Run:
        """Start a run and wait for its end; see `Engine.run`."""
        limit = checked_limit("wait", wait)  # before anything is started
        run = self.start(workflow, input=input, **options)
        run.wait(limit)
        if check:
            run.check()
        return run

    def start_many(
        self, workflows: Iterable[Startable], *, priority: int = 0, tags: Mapping[str, str] | None = None
    ) -> list[Run]:
        return [self.start(each, priority=priority, tags=tags) for each in checked_list(workflows)]

    # Looking

    def adopt(self, run_id: str) -> Run:
        """The run: the server's workers work on what has not ended."""
        return self.get(run_id)

    def events(
        self, run: Run | str | None = None, last: str | None = None, *, until: Literal["ended"] | None = None
    ) -> Iterator[Event]:
        """Events as they happen: the journal of a run, or the status of every run when it changes.

            for event in client.events(run, until="ended"):
                print(event.kind, event.data)

        It reconnects when the connection breaks; `last` is the id of the last event received before. With
        `until="ended"` it stops after the run has ended, with an event `end`; otherwise it never stops by itself.
        """
        path, asked = path_of_events(run.id if isinstance(run, Run) else run, until)
        return follow(self.transport, path, last, asked)


def _startable(workflow: Startable, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The path to post to, and the body apart from the options."""
    if isinstance(workflow, str):
        return path_of("workflows", workflow, "runs"), {"input": values}
    if isinstance(workflow, Document):
        return path_of("runs"), {"document": workflow.canonical, "input": values}
    if values:
        raise InputError("input= is for documents: a class takes its input when it is made, OrderWorkflow(order_id=7)")
    if isinstance(workflow, Workflow):
        return path_of("workflows", type(workflow).workflow_name, "runs"), {"input": dict(workflow.input())}
    if isinstance(workflow, Builder):
        return path_of("runs"), {"graph": to_frozen(workflow.graph(), time.time()), "workflow": workflow.workflow_name}
    raise InputError(f"{shown(workflow)} cannot be started: a name, a Workflow, a Builder or a Document is needed")
