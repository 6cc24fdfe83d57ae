"""`call_external_service`: a service of the settings, whose credentials go nowhere else."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from stepwell.base.secret_refs import SecretRef
from stepwell.base.services import SecretSource
from stepwell.errors import MissingSecret, PermanentError
from tests.handlers.conftest import Bench
from tests.handlers.servers import Asked, Server, answer


def test_base_url_and_credentials_come_from_the_settings():
    with Server(lambda asked: answer(201, {"id": 7})) as server:
        service = {
            "base_url": server.url + "/api/",
            "basic": ["me", "secret:PASSWORD"],
            "headers": {"X-Tenant": "secret:TENANT", "X-Plain": "p"},
            "query": {"key": "secret:QUERY"},
        }
        secrets = {"PASSWORD": "swordfish-11", "TENANT": "swordfish-12", "QUERY": "sword fish&13"}
        bench = Bench(services={"crm": service}, secrets=secrets)
        got = bench.call("call_external_service", service="crm", method="POST", path="/contacts", json={"a": 1})
    assert (got["result"], got["status_code"], got["url"]) == ({"id": 7}, 201, server.url + "/api/contacts")
    [asked] = server.asked
    assert asked.target == "/api/contacts?key=sword+fish%2613"
    assert asked.headers["authorization"] == "Basic bWU6c3dvcmRmaXNoLTEx"
    assert (asked.headers["x-tenant"], asked.headers["x-plain"]) == ("swordfish-12", "p")
    [(_, request, _)] = bench.ctx.recorded
    assert request == {"method": "POST", "service": "crm", "path": "/contacts", "json": {"a": 1}}


def test_a_pair_of_credentials_is_masked_as_it_is_sent():
    """A server may send back what it was sent, and a name and a password are one text then."""
    with Server(lambda asked: answer(200, {"sent": asked.headers["authorization"]})) as server:
        service = {"base_url": server.url, "basic": ["me", "secret:PASSWORD"]}
        bench = Bench(services={"crm": service}, secrets={"PASSWORD": "swordfish-16"})
        got = bench.call("call_external_service", service="crm")
    assert server.asked[0].headers["authorization"].startswith("Basic bWU6")
    assert got["result"] == {"sent": "Basic ***"}


def test_a_document_cannot_put_its_own_in_place_of_what_the_settings_say():
    with Server(lambda asked: answer()) as server:
        service = {
            "base_url": server.url,
            "bearer": "secret:T",
            "headers": {"X-Tenant": "ours"},
            "query": {"key": "ours"},
        }
        bench = Bench(services={"crm": service}, secrets={"T": "swordfish-14"})
        headers = {"authorization": "Bearer theirs", "x-tenant": "theirs", "x-more": "yes"}
        bench.call("call_external_service", service="crm", headers=headers, query={"key": "theirs", "q": "1"})
    [asked] = server.asked
    assert (asked.headers["authorization"], asked.headers["x-tenant"]) == ("Bearer swordfish-14", "ours")
    assert asked.headers["x-more"] == "yes"
    assert asked.target == "/?q=1&key=ours"


UPWARDS = [
    "../x",
    "/../x",
    "x/../../y",
    "x/..",
    "..",
    ".",
    "./x",
    "%2e%2e/x",
    "%2E%2e%2fx",
    "%252e%252e/x",
    "x/%2e%2e/y",
]
ELSEWHERE = ["//evil.test/", "https://evil.test/", "http://evil.test", "\\\\evil.test", "/\\evil.test", "x?y=1", "x#y"]


@pytest.mark.parametrize("path", UPWARDS + ELSEWHERE)
def test_a_path_stays_below_the_base_url(path):
    handler = Bench().handlers["call_external_service"]
    assert handler.check_config({"service": "crm", "path": path}) != []


@pytest.mark.parametrize("path", ["x@evil.test", ":99/x", "@evil.test/", ".evil.test/", "a b", "a\r\nb"])
def test_nothing_in_a_path_becomes_another_host(path):
    with Server(lambda asked: answer()) as server:
        bench = Bench(services={"crm": {"base_url": server.url}})
        if bench.handlers["call_external_service"].check_config({"service": "crm", "path": path}):
            return
        bench.call("call_external_service", service="crm", path=path)
    assert server.asked[0].headers["host"] == f"127.0.0.1:{server.port}"
    assert server.asked[0].path == "/" + path


def test_a_redirect_away_from_the_service_is_refused():
    with Server(lambda asked: answer()) as other:
        with Server(lambda asked: answer(302, Location=other.url)) as server:
            bench = Bench(services={"crm": {"base_url": server.url}}, private=("127.0.0.0/8",))
            with pytest.raises(PermanentError, match="which is not service 'crm'"):
                bench.call("call_external_service", service="crm")
        assert other.connections == 0


def test_a_redirect_within_the_service_is_followed_with_its_credentials():
    def respond(asked: Asked) -> bytes:
        return answer(308, Location="/new") if asked.path == "/old" else answer(200, b"new")

    with Server(respond) as server:
        bench = Bench(services={"crm": {"base_url": server.url, "bearer": "secret:T"}}, secrets={"T": "swordfish-15"})
        assert bench.call("call_external_service", service="crm", path="old")["result"] == "new"
    assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer swordfish-15"] * 2


def test_a_service_is_at_a_private_address_only_if_the_settings_say_so():
    with Server(lambda asked: answer(200, b"in")) as server:

        async def resolve(host: str, port: int) -> list[str]:
            return ["127.0.0.1"]

        entry: dict[str, Any] = {"base_url": f"http://crm.test:{server.port}"}
        with pytest.raises(PermanentError, match="may not be reached"):
            Bench(services={"crm": entry}, resolve=resolve).call("call_external_service", service="crm")
        entry["private"] = True
        bench = Bench(services={"crm": entry}, resolve=resolve)
        assert bench.call("call_external_service", service="crm")["result"] == "in"
        with pytest.raises(PermanentError, match="may not be reached"):  # that is for the service, not for documents
            bench.call("http_request", url=f"http://crm.test:{server.port}/")


def test_a_secret_for_one_service_goes_to_no_other():
    sources = {"T": SecretSource(services=frozenset({"crm"}))}
    with Server(lambda asked: answer()) as server:
        services = {"crm": {"base_url": server.url}, "mail": {"base_url": server.url}}
        bench = Bench(services=services, secrets={"T": "swordfish-16"}, sources=sources, private=("127.0.0.0/8",))
        headers = {"X-Key": SecretRef("T")}
        bench.call("call_external_service", service="crm", headers=headers)
        assert bench.ctx.recorded[0][1]["headers"] == {"x-key": "secret:T"}
        with pytest.raises(MissingSecret, match="may not be used for service 'mail'"):
            bench.call("call_external_service", service="mail", headers=headers)
        with pytest.raises(MissingSecret, match="may not be used for no service"):
            bench.call("http_request", url=server.url, headers=headers)
        assert len(server.asked) == 1
        assert bench.handlers.missing("call_external_service", {"service": "mail", "headers": {"X": "secret:T"}})
        assert not bench.handlers.missing("call_external_service", {"service": "crm", "headers": {"X": "secret:T"}})


def test_a_secret_that_is_echoed_comes_back_masked_in_every_form():
    token = 'sw"ord/fi sh-17'

    def echo(asked: Asked) -> bytes:
        kind = asked.path.strip("/")
        body: Any = asked.headers["x-key"]
        if kind == "json":
            body = {"echo": [body, {body: 1}]}
        elif kind == "binary":
            body = b"\xff" + body.encode()
        else:
            body = body.encode()
        status = 500 if kind == "error" else 200
        return answer(status, body, None if kind == "json" else "text/plain", X_Echo=asked.headers["x-key"])

    with Server(echo) as server:
        bench = Bench(private=("127.0.0.0/8",), secrets={"K": token})
        for kind in ("json", "text", "binary", "error"):
            try:
                got = bench.call("http_request", url=f"{server.url}/{kind}", headers={"X-Key": SecretRef("K")})
            except Exception as error:
                got = {"error": str(error), "outcome": bench.ctx.outcome}
            whole = repr(got) + repr(bench.ctx.recorded)
            if kind == "binary":
                whole += repr(base64.b64decode(got["result"]))
            assert "ord/fi" not in whole
            assert "***" in whole
