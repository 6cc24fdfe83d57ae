"""Writes the cassettes of this version: `python -m tests.history.make_cassettes`. Later versions must replay them as they are.

Written again only when there is something new in them, under new names.
"""

from __future__ import annotations

from pathlib import Path

from stepwell import Builder, Engine
from tests.history.replayed import Flaky, Order, Tally, decorated, rate

FOLDER = Path(__file__).parent / "cassettes"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with Engine("memory://") as engine:
        engine.run(Order(count=2), run_id="order-1").export(FOLDER / "order-format-1.cassette.json")
        engine.run(Flaky(), run_id="flaky-1").export(FOLDER / "flaky-format-1.cassette.json")
        engine.run(Tally(), run_id="tally-1").export(FOLDER / "tally-format-1.cassette.json")
        w = Builder("rates")
        pairs = w.fan_out(["USD", "GBP"], job=rate, args=lambda currency: {"base": "EUR", "currency": currency})
        w.node("next", job=decorated, args={"value": 1}, depends_on=pairs, side_effects="recordable")
        engine.run(w, run_id="rates-1").export(FOLDER / "rates-format-1.cassette.json")


if __name__ == "__main__":
    main()
