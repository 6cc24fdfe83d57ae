"""The web UI's files: served to whoever names the server rightly, and nothing but them; cookies of one store only."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.errors import InputError
from stepwell.server import web_ui
from stepwell.server.access.tokens import create_token
from stepwell.server.serving import Serving, checked_root
from tests.server.running import client, running

PAGE = """<html><meta name="stepwell-root" content="%ROOT%"><meta name="stepwell-nonce" content="%NONCE%">
<script src="./assets/a-1.js"></script></html>"""


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "built"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "favicon.svg").write_text("<svg/>")
    (folder / "assets" / "a-1.js").write_text("let a = 1")
    monkeypatch.setattr(web_ui.WebUi.__init__, "__defaults__", ("", folder))
    return folder


@pytest.fixture
def serving(tmp_path: Path, built: Path) -> Iterator[Serving]:
    with running(f"sqlite:///{tmp_path}/pages.db") as serving:
        create_token(serving.service.store, scopes=["read"])
        yield serving


@pytest.mark.parametrize("path", ["/", "/runs", "/runs/some-id", "/workflows/a/b/c", "/index.html"])
def test_every_path_that_is_not_of_the_api_gives_the_page_without_a_token(serving: Serving, path: str) -> None:
    with client(serving) as api:
        answer = api.get(path)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
        assert answer.text.startswith("<html>")
        assert 'src="/assets/a-1.js"' in answer.text


@pytest.mark.parametrize("path", ["/api/v1/runs", "/api/v1/nothing", "/api/v1/session", "/metrics", "/api"])
def test_no_path_of_the_api_is_given_away(serving: Serving, path: str) -> None:
    with client(serving) as api:
        answer = api.get(path)
        assert answer.status_code == 401
        assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"


def test_only_what_was_built_is_served(serving: Serving, built: Path) -> None:
    (built / "assets" / "later.js").write_text("let late = 1")
    with client(serving) as api:
        for path in ("/assets/later.js", "/assets/..%2findex.html", "/assets/", "/assets/../assets/later.js"):
            assert "late" not in api.get(path).text
        assert api.get("/assets/later.js").status_code == 404
        assert api.post("/").status_code == 401


def test_the_page_may_load_only_its_own_files_with_a_new_nonce_each_time(serving: Serving) -> None:
    with client(serving) as api:
        first, second = api.get("/"), api.get("/")
    for answer in (first, second):
        policy = answer.headers["content-security-policy"]
        nonce = answer.text.partition('nonce" content="')[2].partition('"')[0]
        assert len(nonce) > 20
        assert policy == (
            f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; worker-src 'self'; "
            "font-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
    assert first.headers["content-security-policy"] != second.headers["content-security-policy"]


def test_files_are_kept_for_good_and_compressed_for_those_that_ask(serving: Serving) -> None:
    with client(serving) as api:
        answer = api.get("/assets/a-1.js", headers={"Accept-Encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.text == "let a = 1"
        assert "immutable" in answer.headers["cache-control"]
        assert "javascript" in answer.headers["content-type"]
        assert "immutable" not in api.get("/favicon.svg").headers["cache-control"]
        assert "content-encoding" not in api.get("/assets/a-1.js", headers={"Accept-Encoding": "identity"}).headers


def test_a_server_called_by_another_name_gives_no_page(serving: Serving) -> None:
    with client(serving) as api:
        assert api.get("/", headers={"Host": "evil.example"}).status_code == 421


@pytest.mark.parametrize(
    "target", ["*", "http://127.0.0.1/runs", "//", "//api/v1/runs", "/%00", "/a%2f..%2f..%2fetc%2fpasswd"]
)
def test_odd_targets_break_nothing(serving: Serving, target: str) -> None:
    host, port = serving.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as raw:
        raw.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        status = raw.makefile("rb").readline().split()[1]
    assert status in (b"200", b"400", b"401", b"404"), status


def test_a_checkout_without_the_ui_says_how_to_build_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_ui.WebUi.__init__, "__defaults__", ("", tmp_path / "none"))
    with running(f"sqlite:///{tmp_path}/none.db") as serving, client(serving) as api:
        answer = api.get("/runs")
        assert answer.status_code == 200
        assert "make ui" in answer.text
        assert api.get("/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize("prefix", ["", "/tools/stepwell"], ids=["the proxy cuts the path", "the proxy passes it on"])
def test_it_works_below_a_path(tmp_path: Path, built: Path, prefix: str) -> None:
    with running(f"sqlite:///{tmp_path}/root.db", root="/tools/stepwell/") as serving, client(serving) as api:
        answer = api.get(f"{prefix}/runs")
        assert 'content="/tools/stepwell"' in answer.text
        assert 'src="/tools/stepwell/assets/a-1.js"' in answer.text
        assert api.get(f"{prefix}/assets/a-1.js").text == "let a = 1"
        assert api.get(f"{prefix}/api/v1/runs").json()["items"] == []
        assert api.get(f"{prefix}/api/v1/openapi.json").json()["servers"] == [{"url": "/tools/stepwell"}]


@pytest.mark.parametrize("root", ["stepwell", "/a b", "/a/../b?", '/"><script>', "//"])
def test_a_root_path_that_is_none_is_refused(root: str) -> None:
    if root == "//":
        assert checked_root(root) == ""
        return
    with pytest.raises(InputError, match="--root-path"):
        checked_root(root)


def test_servers_of_two_stores_on_one_machine_keep_their_sessions_apart(tmp_path: Path, built: Path) -> None:
    cookies: dict[str, str] = {}
    for name in ("a", "b"):
        with running(f"sqlite:///{tmp_path}/{name}.db") as serving:
            token, _ = create_token(serving.service.store, scopes=["read"])
            with client(serving, token) as api:
                (cookie,) = api.post("/api/v1/session").cookies.items()
            assert cookie[0].startswith("stepwell_session_")
            assert cookie[0] not in cookies
            cookies |= dict([cookie])
            every = {"Cookie": "; ".join("=".join(each) for each in cookies.items())}
            with client(serving) as api:
                assert api.get("/api/v1/session", headers=every).json()["by_cookie"]


def test_a_cookie_that_is_not_known_counts_as_none(tmp_path: Path, built: Path) -> None:
    with running(f"sqlite:///{tmp_path}/open.db") as serving:
        stale = {"Cookie": "stepwell_session=x; stepwell_session_12345678=y"}
        with client(serving) as api:
            assert api.get("/api/v1/session", headers=stale).json()["token"] is None
            create_token(serving.service.store, scopes=["read"])
            assert api.get("/api/v1/session", headers=stale).status_code == 401
