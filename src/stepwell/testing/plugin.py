"""The pytest plugin. It is loaded into every test run where Stepwell is installed, so it imports nothing until it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..define import Workflow
    from ..engine.reports.replay import Replayed


@pytest.fixture
def stepwell_replay(request: pytest.FixtureRequest) -> Callable[..., Replayed]:
    """Replays a cassette with today's code; the test fails with the first difference, and when no body was executed.

        def test_orders_still_do_what_they_did(stepwell_replay):
            stepwell_replay("orders.cassette.json")

    A relative name is looked for beside the test, then below pytest's root. Only what is registered is run: `workflow=` gives
    the class of a cassette, `jobs=["shop"]` the modules that it may name, by default `jobs` of the settings; documents may name
    the `handlers` of the settings.
    """

    def replay(file: str | Path, *, workflow: type[Workflow] | None = None, jobs: Iterable[str] | None = None) -> Any:
        import os

        from ..base.settings import read_settings
        from ..engine.reports.replay import NOTHING_REPEATABLE, replay_cassette
        from ..errors import ReplayMismatch
        from ..handlers import Handlers
        from ..history.replay.loading import load_cassette

        beside, root = request.path.parent / file, request.config.rootpath
        path = beside if beside.exists() or Path(file).is_absolute() else root / file
        try:
            settings = read_settings({}, os.environ, root)
            report = replay_cassette(
                load_cassette(path),
                workflow,
                jobs=settings.jobs if jobs is None else jobs,
                handlers=Handlers.of_settings(settings),
            )
        except ReplayMismatch as error:
            pytest.fail(f"{path}: {error}", pytrace=False)
        if not report.executed:
            pytest.fail(f"{path}: {NOTHING_REPEATABLE}; then export a run of it", pytrace=False)
        return report

    return replay
