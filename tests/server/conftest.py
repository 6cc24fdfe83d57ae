from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from stepwell.server.serving import Serving
from tests.server.running import ADD, client, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server with a runner, of a store in which no token was made, and which has the document `add`."""
    folder = tmp_path_factory.mktemp("server")
    with running(f"sqlite:///{folder}/server.db", worker={}) as serving:
        with client(serving) as api:
            assert api.post("/api/v1/workflows", json=ADD).status_code == 201
        yield serving


@pytest.fixture
def api(server: Serving) -> Iterator[httpx.Client]:
    with client(server) as made:
        yield made
