"""What the pages show of their server: given by a route to those who may read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from stepwell.base.setting_types import ColourName
from stepwell.base.settings import read_settings
from stepwell.base.version import __version__
from stepwell.cli.web import about
from stepwell.server.access.tokens import create_token
from tests.server.running import client, running

ROOT = Path(__file__).parents[2]
(SETTINGS,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "ui.md").read_text("utf-8"), re.DOTALL)


def test_the_settings_are_given_to_those_who_may_read(tmp_path: Path) -> None:
    (tmp_path / "stepwell.toml").write_text(SETTINGS)
    shown = about(read_settings({}, {"STEPWELL_ENVIRONMENT_COLOUR": "orange"}, tmp_path))
    with running(f"sqlite:///{tmp_path}/about.db", about=shown) as serving:
        token, _ = create_token(serving.service.store, scopes=["read"])
        with client(serving, token) as api:
            assert api.get("/api/v1/server").json() == {
                "version": __version__,
                "environment": "production",
                "environment_colour": "orange",
                "trace_url": "https://traces.example/{run}?node={node}",
            }
        with client(serving) as stranger:
            assert stranger.get("/api/v1/server").status_code == 401
            assert "production" not in stranger.get("/").text


def test_without_settings_there_is_nothing_to_show(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/about.db") as serving, client(serving) as api:
        answer = api.get("/api/v1/server").json()
        assert (answer["environment"], answer["environment_colour"], answer["trace_url"]) == (None, "grey", None)


def test_a_colour_is_one_of_each_theme() -> None:
    styles = (ROOT / "ui" / "src" / "styles.css").read_text("utf-8")
    for name in get_args(ColourName):
        assert styles.count(f"  --env-{name}: #") == 2
        assert f"--env: var(--env-{name});" in styles
