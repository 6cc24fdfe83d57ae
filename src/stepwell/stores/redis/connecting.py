"""Which server, under which name, and what it promises: read from the URL and from the server itself."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from ...base.clock import SECOND
from ...errors import InputError, StoreError

OLDEST = (7, 0)
WAITAOF_SINCE = (7, 2)
_log = logging.getLogger("stepwell.stores")


class RedisAddress(NamedTuple):
    """What a URL says. `shown` is the URL without the password."""

    shown: str
    hosts: tuple[tuple[str, int], ...]
    database: int
    username: str | None
    password: str | None
    tls: bool
    service: str | None
    """The name that sentinels know the server by."""
    namespace: str = "stepwell"
    volatile: bool = False
    """`?durability=none`: it is known that a restart loses everything."""
    wait: Literal["aof", "replica"] | None = None
    wait_seconds: float = 5.0
    ca: str | None = None
    keep: int | None = 7 * 86_400 * SECOND
    """How long runs are kept after their end, in microseconds."""


def read_url(url: str) -> RedisAddress:
    """
    `redis://user:password@host:6379/0`, `rediss://…` (TLS), `redis+sentinel://host:26379,host:26379/service/0`, with
    `?namespace=` (stepwell), `?durability=none`, `?wait=aof` or `?wait=replica` with `?wait_seconds=` (5), `?ca=` (a file),
    `?keep_days=` (7, or `forever`).
    """
    parts = urlsplit(url)
    given, _, hosts = parts.netloc.rpartition("@")
    username, _, password = given.partition(":")
    shown = f"{parts.scheme}://{username + '@' if username else ''}{hosts}{parts.path}"
    shown += f"?{parts.query}" if parts.query else ""

    def wrong(what: str) -> InputError:
        return InputError(f"store URL {shown!r}: {what}")

    sentinel = parts.scheme == "redis+sentinel"
    addresses = tuple(_host(text, 26379 if sentinel else 6379, wrong) for text in hosts.split(","))
    path = [unquote(part) for part in parts.path.strip("/").split("/") if part]
    service = path.pop(0) if sentinel and path else None
    if sentinel and service is None:
        raise wrong("expected the name of a service, as in redis+sentinel://host:26379/mymaster/0")
    if not sentinel and len(addresses) > 1:
        raise wrong("expected one host; Redis Cluster is not supported, sentinels are: redis+sentinel://")
    if len(path) > 1 or not all(part.isascii() and part.isdigit() for part in path):
        raise wrong("expected the number of a database as path, as in redis://localhost:6379/0")
    options: dict[str, Any] = {}
    for name, text in parse_qsl(parts.query, keep_blank_values=True):
        if name not in _OPTIONS:
            raise wrong(f"unknown option {name}; known: {', '.join(_OPTIONS)}")
        field, expected, read, fits = _OPTIONS[name]
        try:
            options[field] = read(text)
            is_valid = fits(options[field])
        except (ValueError, OverflowError):
            is_valid = False
        if not is_valid:
            raise wrong(f"{name}: expected {expected}, got {text!r}")
    return RedisAddress(
        shown=shown,
        hosts=addresses,
        database=int(path[0]) if path else 0,
        username=unquote(username) or None,
        password=unquote(password) or None,
        tls=parts.scheme == "rediss",
        service=service,
        **options,
    )


def _kept(text: str) -> int | None:
    return None if text == "forever" else int(float(text) * 86_400 * SECOND)


_OPTIONS: dict[str, tuple[str, str, Callable[[str], Any], Callable[[Any], bool]]] = {
    "namespace": (
        "namespace",
        "1 to 100 characters, without { } * ? [ ] \\ and blanks",
        str,
        lambda text: 0 < len(text) <= 100 and text.isprintable() and not set("{}*?[]\\ ") & set(text),
    ),
    "durability": ("volatile", "'none', which accepts that a restart loses everything", str, "none".__eq__),
    "wait": ("wait", "aof or replica", str, ("aof", "replica").__contains__),
    "wait_seconds": ("wait_seconds", "a number from 0.001 to 3600", float, lambda seconds: 0.001 <= seconds <= 3600),
    "ca": ("ca", "a file", str, bool),
    "keep_days": ("keep", "a positive number or 'forever'", _kept, lambda kept: kept is None or 0 < kept < 2**51),
}
"""The options of a URL: the field of the address, what is expected, what reads it, and what checks it."""


def _host(text: str, port: int, wrong: Any) -> tuple[str, int]:
    host, colon, number = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    if not colon:
        host, number = text, str(port)
    if not number.isascii() or not number.isdigit() or not 0 < int(number) < 65536:
        raise wrong(f"expected a port, got {number!r}")
    return host.strip("[]") or "localhost", int(number)


def connect(address: RedisAddress, **more: Any) -> Any:
    """A client for the server. It connects when it is used, again after it was cut off, and to whom the sentinels say."""
    from redis import Redis, Sentinel
    from redis.backoff import ExponentialBackoff
    from redis.exceptions import ConnectionError, TimeoutError
    from redis.retry import Retry

    options: dict[str, Any] = {
        "db": address.database,
        "username": address.username,
        "password": address.password,
        "socket_connect_timeout": 5.0,
        "socket_timeout": 30.0,
        "socket_keepalive": True,
        "client_name": "stepwell",
        "protocol": 2,  # in which nothing comes but what was asked for
        # A batch may be sent again: it answers the same question again.
        "retry": Retry(ExponentialBackoff(cap=0.2, base=0.01), 3),
        "retry_on_error": [ConnectionError, TimeoutError],
        **more,
    }
    if address.tls:
        options |= {"ssl": True, "ssl_ca_certs": address.ca}
    if address.service is not None:
        sentinels: Any = Sentinel  # which has no types
        sentinels = sentinels(list(address.hosts), sentinel_kwargs={"socket_timeout": 2.0})
        return sentinels.master_for(address.service, **options)
    ((host, port),) = address.hosts
    return Redis(host, port, **options)


class RedisDurability(NamedTuple):
    """What a server promises about what it acknowledged."""

    kind: Literal["always", "everysec", "no", "unknown", "snapshots", "none"]
    text: str

    def __str__(self) -> str:
        return self.text


_LOSES = {
    "always": "appendfsync always: every acknowledged commit is on the disk",
    "everysec": "appendfsync everysec: a crash of the machine loses at most the last two seconds",
    "no": "appendfsync no: a crash of the machine loses what its system had not written, usually 30 seconds",
    "unknown": "the server does not tell how often it writes to the disk",
    "snapshots": "a crash of the server loses everything since its last snapshot",
    "none": "a restart of the server loses everything",
}


def inspect(client: Any, address: RedisAddress) -> RedisDurability:
    """Refuse a server that cannot keep runs; tell what it may lose."""
    info: dict[str, Any] = client.info()
    version = tuple(int(part) for part in str(info.get("redis_version", "0")).split(".")[:2])
    if version < OLDEST:
        raise StoreError(f"{address.shown} is Redis {info.get('redis_version')}: expected 7.0 or newer, or Valkey")
    if info.get("cluster_enabled") or info.get("redis_mode") == "cluster":
        raise StoreError(
            f"{address.shown} is a Redis Cluster, which is not supported: a batch touches keys that it cannot name before, and "
            f"in a slot that is just being moved such a batch would fail half done. Use one server with replicas, or sentinels"
        )
    if info.get("role") == "slave":
        raise StoreError(
            f"{address.shown} is a replica, which cannot be written; connect to its master, or to sentinels"
        )
    if address.wait == "aof" and version < WAITAOF_SINCE:
        raise StoreError(
            f"{address.shown} is Redis {info.get('redis_version')}, and wait=aof needs 7.2; with `appendfsync always` every "
            f"acknowledged commit is on the disk too"
        )
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction" and not address.volatile:
        raise StoreError(
            f"{address.shown} has maxmemory-policy {policy}: when its memory is full it would throw away parts of runs. Set "
            f"`maxmemory-policy noeviction`, or accept that with ?durability=none"
        )
    found = _durability(client, info)
    if found.kind in ("none", "snapshots") and not address.volatile:
        raise StoreError(
            f"{address.shown} has appendonly no: {found}. Set `appendonly yes`, or accept that with ?durability=none"
        )
    count = info.get("connected_slaves") or 0
    replicas = "no replica" if not count else "1 replica" if count == 1 else f"{count} replicas"
    found = found._replace(text=f"{found.text}; {replicas}, maxmemory-policy {policy}")
    _log.info("store=%s durability=%s (%s)", address.shown, found.kind, found)
    return found


def _durability(client: Any, info: dict[str, Any]) -> RedisDurability:
    from redis.exceptions import ResponseError

    config: dict[str, Any] = {}
    with suppress(ResponseError):  # a user who may not ask, or a provider who does not tell
        config = client.config_get("appendfsync", "save")
    saves = "snapshots" if config.get("save") else "none"
    kind: Any = config.get("appendfsync", "unknown") if info.get("aof_enabled") else saves
    return RedisDurability(kind, _LOSES[kind])
