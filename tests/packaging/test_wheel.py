"""What people install: a source distribution, its wheel, and in it a web UI that needs no Node. No network is used:
what Stepwell depends on, and what builds it, is what the tests run on."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import httpx
import pytest

from tests.engine.waiting import eventually

ROOT = Path(__file__).parents[2]
UI = "src/stepwell/server/ui"
OFFLINE = ("--disable-pip-version-check", "--no-input", "--quiet")
FROM_HERE = ("--no-index", "--no-deps", "--no-build-isolation")


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """What it wrote; its exit code is in the assertion that the caller makes of it."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packages")


@pytest.fixture(scope="module")
def sdist(folder: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder)
    (archive,) = folder.glob("*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def source(sdist: Path, folder: Path) -> Path:
    """The source distribution, unpacked."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir() and path.name.startswith("stepwell-"))
    return unpacked


@pytest.fixture(scope="module")
def wheel(sdist: Path, folder: Path) -> Path:
    run(sys.executable, "-m", "pip", "wheel", *OFFLINE, *FROM_HERE, "-w", folder, sdist)
    (built,) = folder.glob("*.whl")
    return built


def environment(folder: Path) -> Path:
    """The Python of a new environment, which finds the packages of this one, but for Stepwell."""
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "python"


def install(python: Path, *what: str | Path) -> None:
    run(sys.executable, "-m", "pip", "--python", python, "install", *OFFLINE, *FROM_HERE, "--ignore-installed", *what)


def test_the_wheel_serves_the_web_ui_without_node(wheel: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "bare")
    install(python, wheel)
    clean = {"PATH": str(python.parent), "HOME": str(tmp_path)}
    assert shutil.which("node", path=clean["PATH"]) is None
    place = run(python, "-c", "import stepwell; print(stepwell.__file__)", cwd=tmp_path)
    assert place.startswith(str(tmp_path))
    log = tmp_path / "serve.log"
    with log.open("w") as said:
        server = subprocess.Popen(
            [python.parent / "stepwell", "serve", "--store", f"sqlite:///{tmp_path}/w.db", "--port", "0"],
            cwd=tmp_path, env=clean, stdout=said, stderr=said,
        )  # fmt: skip
    try:
        eventually(lambda: " at http" in log.read_text() or server.poll() is not None)
        url = re.findall(r" at (http://[\d.:]+)", log.read_text())[0]
        with httpx.Client(base_url=url, timeout=20) as api:
            page = api.get("/")
            assert "<title>Stepwell</title>" in page.text
            named = re.findall(r'(?:src|href)="(/assets/[^"]+)"', page.text)
            assert any(name.endswith(".js") for name in named)
            assert any(name.endswith(".css") for name in named)
            with zipfile.ZipFile(wheel) as archive:
                files = [name.partition("server/ui")[2] for name in archive.namelist() if "server/ui/" in name]
            assert set(named) <= {*files}
            assert {name: api.get(name).status_code for name in files} == dict.fromkeys(files, 200)
            assert api.get("/api/v1/runs").json()["items"] == []
    finally:
        server.terminate()
        server.wait(20)


def test_both_have_the_built_ui_its_notices_and_the_licence(sdist: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = archive.namelist()
        (notices,) = (archive.read(name).decode() for name in in_wheel if name.endswith("server/ui/licenses.md"))
    with tarfile.open(sdist) as source:
        in_sdist = [name.partition("/")[2] for name in source.getnames()]
    assert any(name.endswith("dist-info/licenses/LICENSE") for name in in_wheel)
    assert "LICENSE" in in_sdist
    built = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / UI).rglob("*") if path.is_file()}
    assert built <= {*in_wheel}
    assert {f"src/{name}" for name in built} <= {*in_sdist}
    assert not [name for name in (*in_wheel, *in_sdist) if "node_modules" in name or name.endswith(".map")]
    for package in ("react", "@tanstack/react-router", "@fontsource-variable/inter", "tailwindcss"):
        assert f"\n## {package}" in notices
    assert "SIL OPEN FONT LICENSE" in notices.upper()


def test_without_the_built_ui_only_an_editable_install_is_made(source: Path, tmp_path: Path) -> None:
    bare = tmp_path / "source"
    shutil.copytree(source, bare, ignore=shutil.ignore_patterns("ui"))
    for target in ("sdist", "wheel"):
        refused = subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", tmp_path],
            cwd=bare, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert refused.returncode != 0
        assert "run `make ui` first" in refused.stderr
    python = environment(tmp_path / "environment")
    install(python, "--editable", bare)
    place = run(python, "-c", "import stepwell; print(stepwell.__file__)", cwd=tmp_path)
    assert Path(place.strip()) == bare / "src/stepwell/__init__.py"
