"""Whatever the OpenAPI document allows, and much that it does not: no 5xx, and no answer that its schema forbids."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance

from stepwell.server.access.tokens import create_token
from stepwell.server.serving import Serving
from tests.server.running import ADD, client, ended, running

OPEN = ("/healthz", "/readyz", "/hooks/{name}")
STREAMS = "/events"
"""They go on for as long as somebody listens."""


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with running(f"sqlite:///{tmp_path_factory.mktemp('schema')}/schema.db", worker={}) as found:
        with client(found) as api:
            api.post("/api/v1/workflows", json=ADD)
            run = api.post("/api/v1/workflows/add/runs", json={"input": {"a": 1}, "run_id": "known"}).json()
            ended(api, run["id"])
        yield found


@pytest.fixture(scope="module")
def token(serving: Serving) -> str:
    return create_token(serving.service.store, ["admin"])[0]


QUICK = settings(
    max_examples=2, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)


@pytest.mark.timeout(240)
def test_no_answer_is_an_error_of_the_server_or_against_its_schema(serving: Serving, token: str) -> None:
    """Its own loop over the operations: the plugin of schemathesis needs an older pytest."""
    known = {"Authorization": f"Bearer {token}"}
    schema = schemathesis.openapi.from_url(f"{serving.url}/api/v1/openapi.json", headers=known)
    walked = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path.endswith(STREAMS):
            continue
        walked += 1

        @QUICK
        @given(case=operation.as_strategy())
        def ask(case: schemathesis.Case) -> None:
            case.call_and_validate(
                base_url=serving.url,
                headers=known,
                checks=[not_a_server_error, response_schema_conformance],
                timeout=60,
            )
            without = case.call(base_url=serving.url, headers={"Authorization": "Bearer wrong"}, timeout=60)
            assert without.status_code in (400, 401, 413, 421) or case.operation.path in OPEN, case

        ask()
    assert walked > 40
