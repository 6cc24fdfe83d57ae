"""Log lines by level and text, in short pages, and all of them as a file."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from stepwell import Builder, Engine
from stepwell.engine.runs import log_search
from stepwell.server.access.tokens import create_token
from tests.server.running import client, running


def say_much() -> None:
    log = logging.getLogger("shop.orders")
    log.setLevel(logging.INFO)
    for number in range(30):
        log.log(logging.ERROR if number % 10 == 9 else logging.INFO, "line %s of Many", number)
    print("printed")


def test_lines_are_found_by_level_and_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_search, "AT_ONCE", 4)
    monkeypatch.setattr(log_search, "SEARCHED_LINES", 8)
    store = f"sqlite:///{tmp_path}/logs.db"
    builder = Builder("says")
    builder.node("first", job="tests.server.test_log_search:say_much")
    with Engine(store) as engine:
        run = engine.run(builder).id
    with running(store) as serving, client(serving) as api:
        place = f"/api/v1/runs/{run}/logs"

        def found(**asked: Any) -> list[str]:
            lines: list[str] = []
            while True:
                page = api.get(place, params=asked).json()
                assert len(page["items"]) <= asked.get("limit", 1_000)
                lines += [line["message"] for line in page["items"]]
                if page["next"] is None:
                    return lines
                asked["cursor"] = page["next"]

        errors = [f"line {number} of Many" for number in (9, 19, 29)]
        assert found(level="ERROR") == found(level="WARNING") == errors
        assert found(level="ERROR", limit=1) == errors
        assert found(q="LINE 9 OF m") == errors[:1]
        assert len(found(q="SHOP.orders", limit=7)) == 30
        assert found(q="nothing") == found(level="CRITICAL") == []
        assert found(q="PRINTED", node="first", attempt=1) == ["printed"]
        assert len(found()) == 31
        assert len(api.get(place, params={"level": "ERROR"}).json()["items"]) < 3, "a page looks at few lines"
        text = api.get(place, params={"format": "text"})
        assert text.headers["content-type"].startswith("text/plain")
        assert f'filename="{run}.log"' in text.headers["content-disposition"]
        assert len(text.text.splitlines()) == 31
        assert "first #1  ERROR  shop.orders: line 9 of Many" in text.text
        assert len(api.get(place, params={"format": "text", "level": "ERROR"}).text.splitlines()) == 3
        assert api.get(place, params={"level": "LOUD"}).status_code == 422


def test_lines_are_read_from_the_end_and_then_what_is_new(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/logs.db"
    builder = Builder("says")
    builder.node("first", job="tests.server.test_log_search:say_much")
    with Engine(store) as engine:
        run = engine.run(builder)
        with running(store) as serving, client(serving) as api:
            place = f"/api/v1/runs/{run.id}/logs"

            def page(**asked: Any) -> Any:
                return api.get(place, params=asked).json()

            whole = page()["items"]
            assert [line["index"] for line in whole] == [*range(31)]
            last = page(tail=5)
            assert (last["items"], last["next"]) == (whole[-5:], None)
            pages = [last]
            while pages[-1]["before"]:
                pages.append(page(before=pages[-1]["before"], limit=10))
            assert [line for each in reversed(pages) for line in each["items"]] == whole
            assert [line["message"] for line in page(tail=2, level="ERROR")["items"]] == [
                "line 19 of Many",
                "line 29 of Many",
            ]
            since = pages[0]["since"]
            run.reattempt("first")
            run.wait()
            new = page(since=since)["items"]
            assert [line["index"] for line in new if line["attempt"] == 2] == [*range(31)]
            assert page(since=page()["since"], node="first", attempt=2, level="CRITICAL")["items"] == []
            assert api.get(place, params={"before": "rubbish"}).status_code == 400


def test_a_browser_downloads_a_log_by_a_link(tmp_path: Path) -> None:
    """As the page of a run makes it: the session is a cookie, the filter is in the address, and a run may have an odd id."""
    store = f"sqlite:///{tmp_path}/logs.db"
    builder = Builder("says")
    builder.node("first", job="tests.server.test_log_search:say_much")
    with Engine(store) as engine:
        run = engine.run(builder, run_id="nightly:2026-03-01T02:30:00+01@shop")
    with running(store) as serving:
        token, _ = create_token(serving.service.store, scopes=["read"])
        link = f"/api/v1/runs/{quote(run.id, safe='')}/logs"
        asked = {"node": "first", "attempt": "1", "level": "ERROR", "q": "many", "format": "text"}
        with client(serving) as browser:
            assert browser.get(link, params=asked).status_code == 401
            assert browser.post("/api/v1/session", headers={"Authorization": f"Bearer {token}"}).is_success
            click = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "same-origin"}
            answer = browser.get(link, params=asked, headers=click)
            assert answer.status_code == 200
            assert answer.headers["content-type"] == "text/plain; charset=utf-8"
            assert answer.headers["content-disposition"] == (
                'attachment; filename="nightly_2026-03-01T02_30_00_01_shop.log"'
            )
            assert answer.headers["x-content-type-options"] == "nosniff"
            lines = answer.text.splitlines()
            assert [line.split("shop.orders: ")[1] for line in lines] == [
                f"line {number} of Many" for number in (9, 19, 29)
            ]
            refused = browser.get(link, params={**asked, "node": "nowhere"}, headers=click)
            assert refused.status_code == 404
            assert "content-disposition" not in refused.headers
