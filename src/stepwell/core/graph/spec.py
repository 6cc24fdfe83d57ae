"""What one node of a graph is, and the table of its options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypedDict, get_args

from ...base.clock import POSITIVE_SECONDS_NEEDED, Duration, in_seconds, is_seconds
from ...base.ids import NodeId
from ..model.lanes import Lane
from .retry import Retry

Body = Literal["thread", "loop", "process"]
"""Where a body runs: a thread (`def`), the event loop (`async def`) or a process of its own (`isolation="process"`)."""

OnLost = Literal["rerun", "interrupt"]
Isolation: TypeAlias = Literal["thread", "process"]
Kind = Literal["step", "task"]
Join = Literal["any", "all"]
"""Which parents a node needs to have run: a node whose parents were all skipped is skipped too, or as soon as one was."""
SideEffects = Literal["pure", "recordable", "opaque"]
"""Whether a replay runs a body again (`pure`: no side effects; `recordable`: all recorded) or returns its output (`opaque`)."""

NO_ARGS: Mapping[str, Any] = MappingProxyType({})
DEFAULT_QUEUE = "default"
MAX_NAME = 500
"""Characters of a name or an id, all of them printable: they are shown on terminals."""


class JobOptions(TypedDict, total=False):
    """The options of any node: keywords of `step`, `task`, `node` and `fan_out`."""

    retry: Retry | int | None
    timeout: Duration | None
    on_lost: OnLost
    isolation: Isolation
    queue: str
    side_effects: SideEffects
    transaction: bool
    when: Callable[..., Any] | str | None
    join: Join


class MethodOptions(JobOptions, total=False):
    """The options of a method."""

    idempotency_key: Callable[..., Any] | None
    requires_idempotency: bool
    was: str | Iterable[str] | None


class Option(NamedTuple):
    """An option of nodes, as code, stored graphs and documents know it. Most are a field of NodeSpec with the same name."""

    name: str
    type: Any
    """The annotation of what people write."""
    expected: str
    fits: Callable[[Any], bool]
    """Whether it is a value that NodeSpec takes."""
    default: Any
    written: str
    """As in code, for the docs."""
    about: str
    of_code: Callable[[Any], Any] = lambda value: value
    """What people write, as a value that is to fit."""
    in_documents: str | None = None
    """The name of its field in documents."""
    to_json: Callable[[Any], Any] = lambda value: value
    """As stored graphs have it."""
    of_json: Callable[[Any], Any] = lambda value: value


def _choice(name: str, choices: Any, default: str, about: str, in_documents: str | None = None) -> Option:
    names: tuple[str, ...] = get_args(choices)
    written = r" \| ".join(f'"{each}"' for each in names)
    expected = f"one of {', '.join(names)}"
    fits = names.__contains__
    return Option(name, choices, expected, fits, default, f"{name}={written}", about, in_documents=in_documents)


def _flag(name: str, about: str) -> Option:
    return Option(name, bool, "true or false", lambda value: isinstance(value, bool), False, f"{name}=True", about)


def _seconds(value: Any) -> Any:
    """Always a float, so that `timeout=30` and `timeout=30.0` are the same graph."""
    seconds = in_seconds(value)
    return float(seconds) if is_seconds(seconds) else seconds


def _former_names(was: Any) -> tuple[Any, ...]:
    names = () if was is None else (was,) if isinstance(was, str) or not isinstance(was, Iterable) else tuple(was)
    return tuple(dict.fromkeys(names)) if all(map(is_text, names)) else names


def is_text(value: object) -> bool:
    """Whether a value is storable text: not empty, and without half a surrogate pair."""
    if not isinstance(value, str) or not value.strip():
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def is_name(value: Any, without: str = "") -> bool:
    """Whether it is a printable name without this character: control characters could command a terminal."""
    return is_text(value) and len(value) <= MAX_NAME and value.isprintable() and not (without and without in value)


NODE_OPTIONS = (
    Option(
        "retry",
        Retry | int | None,
        "a number of attempts or a Retry",
        lambda value: value is None or isinstance(value, Retry),
        None,
        "retry=3` or `Retry(max_attempts, base_delay, max_delay, retry_on)",
        "try again after a delay that occupies no worker; `retry_on` has exception classes or their names, "
        '`"ConnectionError"`, `"shop.errors.Busy"`, which are imported where the workflow is written',
        Retry.of,
        "retry",
        Retry.to_dict,
        Retry.from_dict,
    ),
    Option(
        "timeout",
        Duration | None,
        POSITIVE_SECONDS_NEEDED,
        lambda value: value is None or is_seconds(value, positive=True),
        None,
        "timeout=seconds",
        "how long one attempt may take; then it is TIMED_OUT: a thread's body goes on unrecorded, a process is killed",
        _seconds,
        "timeout_seconds",
        of_json=float,
    ),
    _choice("on_lost", OnLost, "rerun", "after a lost worker: run again, or never by itself", "on_lost"),
    _choice("isolation", Isolation, "thread", "where a `def` body runs"),
    Option(
        "queue",
        str,
        "a name without '/'",
        lambda value: is_name(value, without="/"),
        DEFAULT_QUEUE,
        'queue="name"',
        "who may run it: engines that serve this queue ([running](running.md#queues-and-priorities))",
        in_documents="queue",
    ),
    _choice(
        "side_effects",
        SideEffects,
        "opaque",
        "what a replay may do with the body: run it again, or only give what it returned ([effects](effects.md))",
        "side_effects",
    ),
    _flag(
        "transaction",
        "the body gets `ctx.db`, a transaction on the PostgreSQL server of the store: what it writes and its completion are "
        "one transaction ([effects exactly once](postgres.md#effects-exactly-once))",
    ),
    Option(
        "when",
        Callable[..., Any] | str | None,
        'a function of what ancestors returned, as in lambda check: check["ok"], or its name',
        lambda value: value is None or callable(value) or is_text(value),
        None,
        "when=lambda check: …",
        "a condition on what ancestors returned: if it does not hold, the node is SKIPPED ([branching](branching.md))",
        in_documents="when",
    ),
    _choice(
        "join",
        Join,
        "any",
        "skip the node if all of its parents were skipped, or as soon as one was ([branching](branching.md#joins))",
        "join",
    ),
    Option(
        "idempotency_key",
        Callable[..., Any] | None,
        'a function of self, as in lambda self: f"order-{self.order_id}"',
        lambda value: value is None or callable(value),
        None,
        "idempotency_key=lambda self: …",
        "computes the `ctx.idempotency_key` of this node from its input and the outputs it takes; for methods",
    ),
    _flag("requires_idempotency", "refuse the node while it has no `idempotency_key`; for methods"),
    Option(
        "was",
        str | Iterable[str] | None,
        "the name this node had in an earlier version, or a list of such names",
        lambda value: all(map(is_text, value)),
        (),
        'was="name"',
        "names this node had in earlier versions of its class ([healing](healing.md)); for methods",
        _former_names,
        to_json=sorted,
        of_json=tuple,
    ),
)
"""A new option has a row here, a keyword above, a field below, and the place where it acts."""


def conflicts(of: Callable[[str], Any]) -> Iterator[tuple[str, str]]:
    """Options that exclude each other: the one to change, and why. `of` gives the value of an option, None if it is not set."""
    retry, side_effects = of("retry"), of("side_effects")
    if of("on_lost") == "interrupt" and retry is not None and retry.retry_on is None:
        yield "retry", "on_lost=interrupt promises at most one run per request; a retry needs an explicit retry_on"
    if of("transaction") and side_effects not in (None, "opaque"):
        message = f"transaction=True: what it writes is not recorded, so it cannot be side_effects={side_effects!r}"
        yield "transaction", message


class NodeSpec(NamedTuple):
    """A vertex of a graph: what it runs, after what, and under which rules."""

    id: NodeId
    name: str
    depends_on: tuple[NodeId, ...] = ()
    job: str | None = None
    """`package.module:function`, the name of a handler, or None when the node is the method `name` of the workflow's class."""
    args: Mapping[str, Any] = NO_ARGS
    needs: tuple[NodeId, ...] = ()
    """Ancestors whose outputs the body takes as parameters."""
    kind: Kind = "step"
    retry: Retry | None = None
    timeout: float | None = None
    on_lost: OnLost = "rerun"
    body: Body = "thread"
    queue: str = DEFAULT_QUEUE
    was: tuple[str, ...] = ()
    """Ids this node had in earlier versions of its workflow: what a run did under them, it did for this node."""
    side_effects: SideEffects = "opaque"
    templated: bool = False
    """Its args hold templates, as in a document. They are rendered before the body begins, with the outputs it `needs`."""
    transaction: bool = False
    """Its body gets `ctx.db`, a transaction on the server of the store, with which its completion is committed."""
    own_key: bool = False
    """A function of its method, `idempotency_key=`, makes what `ctx.idempotency_key` gives."""
    when: str | None = None
    """Its condition: the name of a function of its class, a StoredCondition, or in a document an expression."""
    join: Join = "any"

    @property
    def lane(self) -> Lane:
        return Lane(self.queue, self.body, self.on_lost == "interrupt")


OPTIONS: Final = 5
"""From this field on, the fields of a node are options; those before say what it is, its dependencies and arguments."""
PLAIN_OPTIONS = NodeSpec(NodeId(""), "")[OPTIONS:]
"""Those of most nodes of a large graph."""
