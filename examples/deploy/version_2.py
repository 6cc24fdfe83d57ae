"""Version 2: accounts are activated again, `charge` is called `bill`, letters are gone, and two steps are new."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from stepwell import Context, Engine, Workflow, step


class Onboarding(Workflow):
    customer: str

    @step
    def confirm(self) -> str:
        """Waits for the customer's answer to a mail."""
        for _ in range(1_000):
            if not Path(f"no-answer-of-{self.customer}").exists():
                return f"{self.customer}@example.com"
            time.sleep(0.03)
        raise TimeoutError(f"no answer of {self.customer}")

    @step
    def check_address(self, confirm: str) -> bool:
        """New. Where the customer is billed already it comes too late, and is skipped."""
        return "@" in confirm

    @step(was="charge")
    def bill(self, ctx: Context) -> str:
        """Renamed. Whoever was charged by version 1 is not billed again, and the idempotency key stays the same."""
        return ctx.idempotency_key

    @step
    def activate(self) -> None: ...

    @step
    def send_invoice(self, bill: str) -> str:
        """New, and in time for everybody: nothing below it has started."""
        return f"invoice for {bill}"

    @step
    def welcome(self, confirm: str) -> str:
        return f"welcome, {confirm}"


def main() -> None:
    """Start a run for every customer that is named, or go on with the one that is there, and work on all of them."""
    url, *customers = sys.argv[1:]
    with Engine(url) as engine:
        for run in [engine.start(Onboarding(customer=name), run_id=name) for name in customers]:
            run.wait()


if __name__ == "__main__":
    main()
