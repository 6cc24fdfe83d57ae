"""Every command after the class of a run has changed: steps came, went and were renamed."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.cli.conftest import Shop

HEAD = """
from pathlib import Path
from stepwell import Workflow, step

def note(line):
    with open("ledger.txt", "a") as ledger:
        ledger.write(line + "\\n")
    return line

class Parcel(Workflow):
"""


def written(*steps: str) -> str:
    """A module with a workflow of these steps, `new<old` for a renamed one; `charge` fails until a file `mended` is there."""
    text = HEAD
    for each in steps:
        name, _, was = each.partition("<")
        text += f"    @step(was={was!r})\n" if was else "    @step\n"
        text += f"    def {name}(self):\n"
        if name == "charge":
            text += "        if not Path('mended').exists(): raise ValueError('no money')\n"
        text += f"        return note({name!r})\n"
    return text


BEFORE = written("take", "check", "charge", "pack", "ship")
AFTER = written("take", "late", "check", "stamp", "charge", "ship", "thank")


@pytest.fixture
def failed(shop: Shop) -> Shop:
    """A run `r` that failed at `charge`, of a class that has changed since."""
    shop.write("parcel.py", BEFORE)
    shop("run", "parcel:Parcel", "--run-id", "r", code=1)
    shop.write("parcel.py", AFTER)
    return shop


def test_a_retry_heals_says_so_and_shows_the_whole_run(failed: Shop) -> None:
    failed.touch("mended")
    ended = failed("retry", "r")
    assert "run r was healed to the present version of Parcel (3 new: late, stamp, thank; 1 gone: pack)" in ended.err
    assert "Parcel  7 nodes  run r\n" in ended.err, "what is gone is not counted"
    assert failed("ls", "--json").json[0]["nodes_total"] == 7
    assert re.search(r"r +Parcel +COMPLETED +7 ", failed("ls").out)
    assert "7 nodes, 6 completed, 1 skipped" in failed("why", "r").out
    assert failed("show", "r", "--json").json["metrics"]["nodes"] == 7
    assert "7 nodes shared" in failed("fork", "r", "--no-wait").err
    assert ended.json == "thank"
    assert failed.ledger() == ["take", "check", "stamp", "charge", "ship", "thank"]
    assert "every invariant holds" in failed("audit", "r").out


def test_a_healed_run_is_shown_with_what_is_gone(failed: Shop) -> None:
    failed("retry", "r", code=1)
    shown = failed("show", "r").out
    assert "no longer in the workflow: pack CANCELLED" in shown
    assert "healed_late" in shown
    record = failed("show", "r", "--json").json
    assert [node["id"] for node in record["nodes"]] == ["take", "late", "check", "stamp", "charge", "ship", "thank"]
    assert [(node["id"], node["status"]) for node in record["removed_nodes"]] == [("pack", "CANCELLED")]
    assert record["heals"] == 1
    assert sum(record["counts"].values()) == 7
    assert failed("ls").out
    assert "every invariant holds" in failed("audit", "r").out


def test_the_graph_of_a_healed_run_is_that_of_its_class(failed: Shop) -> None:
    failed("retry", "r", code=1)
    drawn = failed("graph", "r", "--json").json
    nodes = drawn["nodes"]
    assert nodes["ids"] == ["take", "late", "check", "stamp", "charge", "ship", "thank"]
    assert nodes["statuses"][nodes["ids"].index("late")] == "SKIPPED"
    assert "pack" not in failed("graph", "r").out
    assert "pack" not in failed("graph", "r", "--dot").out
    assert "<svg" in failed("graph", "r", "--svg", "-").out
    assert "pack" not in failed("graph", "r", "--frozen").out


def test_why_says_what_healing_did_to_a_node(failed: Shop) -> None:
    failed("retry", "r", code=1)
    late = failed("why", "r", "late").out
    assert "late was skipped: it joined the run when nodes after it had already started" in late
    assert "the code of the workflow changed and the run switched to it at" in late
    gone = failed("why", "r", "pack").out
    assert "pack was cancelled before it began, because the workflow no longer has it" in gone
    assert "retry" not in gone, "a retry does not run what is gone"
    assert "it depends on charge" in failed("why", "r", "thank").out


def test_a_possible_rename_is_asked_about_and_accepted(failed: Shop) -> None:
    failed.write("parcel.py", written("take", "verify", "charge", "ship"))
    refused = failed("retry", "r", code=6)
    assert "gone after an attempt: 'check'; new: 'verify'" in refused.err
    assert "--accept on the command line" in refused.err
    failed.touch("mended")
    failed("retry", "r", "--accept")
    assert failed.ledger() == ["take", "check", "verify", "charge", "ship"]


def test_a_node_that_was_renamed_is_found_under_both_names(failed: Shop) -> None:
    failed.write("parcel.py", written("take", "verify<check", "charge", "ship"))
    failed.touch("mended")
    assert "(1 gone: pack; 1 renamed: check to verify)" in failed("retry", "r").err
    assert "verify completed" in failed("why", "r", "check").out
    assert "verify completed" in failed("why", "r", "verify").out


def test_resume_heals_a_run_that_another_process_left(shop: Shop) -> None:
    running = shop.start("run", "shop:Slow", "--run-id", "slow")
    shop.until(lambda: "second" in shop.ledger())
    running.kill()
    running.wait()
    text = (shop.folder / "shop.py").read_text()
    more = (
        '    @step\n    def fourth(self, third: str) -> str:\n        note("fourth")\n        return third + "4"\n\n\n'
    )
    at = text.index("class ", text.index("class Slow(") + 5)
    shop.write("shop.py", text[:at].rstrip() + "\n\n" + more + text[at:])
    shop.touch("go")
    ended = shop("resume", "slow")
    assert "was healed to the present version of Slow (1 new: fourth)" in ended.err
    assert ended.json == "124"
    assert shop.ledger() == ["first", "second", "second", "third", "fourth"]


def test_a_paused_run_is_resumed(shop: Shop) -> None:
    running = shop.start("run", "shop:Slow", "--run-id", "slow")
    shop.until(lambda: "second" in shop.ledger())
    running.kill()
    running.wait()
    shop.write("pause.py", "from stepwell import Engine\nEngine(runner=None).get('slow').pause()\n")
    subprocess.run([sys.executable, "pause.py"], cwd=shop.folder, check=True)
    assert shop.status("slow") == "PAUSED"
    shop.touch("go")
    assert shop("resume", "slow").json == "12"


def test_what_the_class_asks_for_now_is_given_with_the_retry_of_a_run_that_a_failure_paused(shop: Shop) -> None:
    head = "from pathlib import Path\nfrom stepwell import Workflow, step\nclass Gift(Workflow, on_failure='pause'):\n"
    pack = "    @step\n    def pack(self):\n        assert Path('go').exists(), 'no'\n"
    shop.write("gift.py", head + pack)
    assert "stepwell retry gift" in shop("run", "gift:Gift", "--run-id", "gift", code=6).err
    shop.write("gift.py", head + "    ribbons: int\n" + pack.replace("assert", "assert self.ribbons and"))
    shop.touch("go")
    told = shop("retry", "gift", code=6).err
    assert "stepwell retry gift --input NAME=VALUE" in told
    shop("retry", "gift", "--input", "ribbons=3")
    shown = shop("show", "gift", "--json").json
    assert (shown["status"], shown["input"]) == ("COMPLETED", {"ribbons": 3})


def test_what_the_class_asks_for_now_is_given_with_resume(shop: Shop) -> None:
    head = "from pathlib import Path\nfrom stepwell import Workflow, step\nclass Gift(Workflow):\n"
    pack = "    @step\n    def pack(self):\n        return 1\n"
    send = "    @step\n    def send(self):\n        assert Path('go').exists(), 'no'\n"
    shop.write("gift.py", head + pack + send)
    shop("run", "gift:Gift", "--run-id", "gift", code=1)
    shop("retry", "gift", "--no-wait")
    shop.write("gift.py", head + "    ribbons: int\n" + pack + send)
    shop.touch("go")
    told = shop("resume", "gift", code=6).err
    assert (
        "error: run gift is paused: its input does not fit its class: ribbons: this input is missing, expected int."
        in told
    )
    assert "stepwell resume gift --input NAME=VALUE  gives the missing input, and goes on" in told
    assert "its input does not fit" in shop("ls").out
    assert "--input NAME=VALUE" in shop("why", "gift").out
    assert "ribbons: expected int, got 'many'" in shop("resume", "gift", "-i", "ribbons=many", code=2).err
    assert "knots: resume and retry take only what" in shop("resume", "gift", "-i", "knots=2", code=2).err
    shop("resume", "gift", "--input", "ribbons=3")
    assert shop("show", "gift", "--json").json["input"] == {"ribbons": 3}
