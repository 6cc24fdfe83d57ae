"""Version 1 of a service that takes new customers on. It has a fault: it activates accounts on a host that is gone."""

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
    def charge(self, ctx: Context) -> str:
        return ctx.idempotency_key

    @step
    def activate(self) -> None:
        time.sleep(30)
        raise TimeoutError("accounts.old.example does not answer")

    @step
    def print_letter(self) -> None: ...

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
