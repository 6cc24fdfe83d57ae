"""Every route and stream denies by default: without a token, with one that is wrong or has ended, with too small a scope."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from fastapi.routing import APIRoute

from stepwell.answers.scopes import SCOPES, Scope
from stepwell.base.clock import SECOND
from stepwell.base.codec import decode, encode
from stepwell.core.model import PutRecord
from stepwell.core.store import Store, reader
from stepwell.server.access.tokens import create_token, revoke_token
from stepwell.server.routes import OPEN, SCOPE
from stepwell.server.serving import Serving
from tests.server.running import client, running

OPEN_PATHS = {"/healthz", "/readyz", "/hooks/{name}"}
"""What everybody may ask. A route that is added here must tell nothing, or check its callers itself."""


class Walked(NamedTuple):
    method: str
    path: str
    scope: Scope | None


class Tokens(NamedTuple):
    by_scope: dict[Scope, str]
    refused: dict[str, str]


def routes_of(serving: Serving) -> list[Walked]:
    guard: Any = serving._server.config.app
    found = []
    for route in guard.app.app.routes:
        assert isinstance(route, APIRoute), f"{route} is of a kind that the guard cannot ask for a scope"
        extra = route.openapi_extra or {}
        assert (SCOPE in extra) != (OPEN in extra)
        found += [Walked(method, route.path, extra.get(SCOPE)) for method in route.methods]
    return found


def expire(store: Store, identity: str) -> None:
    row = reader.get_record(store, "token", identity)
    assert row is not None
    value = decode(row.value)
    value["expires_at"] = store.now() - SECOND
    store.commit([PutRecord("token", identity, encode(value))])


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with running(f"sqlite:///{tmp_path_factory.mktemp('walk')}/walk.db") as serving:
        yield serving


@pytest.fixture(scope="module")
def tokens(guarded: Serving) -> Tokens:
    store = guarded.service.store
    by_scope = {scope: create_token(store, [scope])[0] for scope in SCOPES}
    expired, token = create_token(store, ["admin"])
    expire(store, token.id)
    revoked, token = create_token(store, ["admin"])
    revoke_token(store, token.id)
    good = by_scope["admin"]
    wrong = {
        "expired": expired,
        "revoked": revoked,
        "wrong secret": good[:-1] + ("a" if good[-1] != "a" else "b"),
        "wrong id": good.replace("sw_", "sw_0"),
        "rubbish": "rubbish",
        "empty secret": "_".join(good.split("_", 2)[:2]) + "_",
        "not ASCII": "sw_\u00e4_\u00f6",
    }
    return Tokens(by_scope, wrong)


def ask(api: httpx.Client, walked: Walked, token: str | None) -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}".encode()}
    path = walked.path.replace("{verb}", "retry").replace("{number}", "1").replace("{", "").replace("}", "")
    with api.stream(walked.method, path, headers=headers) as answer:  # type: ignore[arg-type]
        return answer.status_code


def test_every_route_denies_whoever_is_not_known(guarded: Serving, tokens: Tokens) -> None:
    walked = routes_of(guarded)
    assert len(walked) > 40
    with client(guarded) as api:
        for route in walked:
            if route.scope is None:
                assert route.path in OPEN_PATHS or route.path.startswith("/hooks/")
                continue
            assert ask(api, route, None) == 401, route
            for what, token in tokens.refused.items():
                assert ask(api, route, token) == 401, (route, what)


def test_every_route_denies_too_small_a_scope_and_takes_one_that_is_enough(guarded: Serving, tokens: Tokens) -> None:
    with client(guarded) as api:
        for route in routes_of(guarded):
            if route.scope is None:
                continue
            for scope in SCOPES:
                if SCOPES.index(scope) < SCOPES.index(route.scope):
                    assert ask(api, route, tokens.by_scope[scope]) == 403, (route, scope)
            if route.path != "/api/v1/events":  # it would go on for ever
                enough = ask(api, route, tokens.by_scope[route.scope])
                assert enough not in (401, 403), route
                assert enough < 500, route


def test_paths_that_are_no_routes_are_denied_too(guarded: Serving, tokens: Tokens) -> None:
    with client(guarded) as api:
        for path in (
            "/api",
            "/api/docs",
            "/api/v1/nothing",
            "/healthz/",
            "/healthz/../api/v1/runs",
            "/hooks",
            "/metrics/",
        ):
            assert api.get(path).status_code == 401, path
        for method in ("OPTIONS", "HEAD", "PATCH", "TRACE", "PROPFIND"):
            assert api.request(method, "/api/v1/runs").status_code in (400, 401), method


def test_all_other_paths_give_the_same_page_which_holds_no_data(guarded: Serving) -> None:
    with client(guarded) as api:
        pages = {
            re.sub('nonce" content="[^"]*"', "", api.get(path).text) for path in ("/", "/docs", "/runs/x", "//", "/a/b")
        }
        assert len(pages) == 1
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            assert api.request(method, "/").status_code == 401, method


def test_a_scope_includes_those_before_it(guarded: Serving, tokens: Tokens) -> None:
    with client(guarded, tokens.by_scope["author"]) as api:
        assert api.get("/api/v1/runs").status_code == 200
        assert api.get("/api/v1/session").json()["scopes"] == ["author"]
