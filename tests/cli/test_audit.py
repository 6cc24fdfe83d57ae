"""`audit`: a stored run is recomputed from its rows."""

from __future__ import annotations

import apsw

from tests.cli.conftest import Shop


def test_a_sound_run_passes(old_shop: Shop) -> None:
    run = old_shop("ls", "--json").json[0]["id"]
    assert "every invariant holds" in old_shop("audit", run).out
    assert old_shop("audit", run, "--json").json["problems"] == []


def test_a_tampered_run_does_not(shop: Shop) -> None:
    shop("run", "shop:Order", "--input", "order_id=7")
    run = shop("ls", "--json").json[0]["id"]
    db = apsw.Connection(str(shop.folder / ".stepwell" / "stepwell.db"))
    db.execute("UPDATE run SET open = open + 1 WHERE id = ?", (run,))
    db.close()
    assert "the run counts" in shop("audit", run, code=1).out
