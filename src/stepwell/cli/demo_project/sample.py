"""What `stepwell demo` runs: a retry and a branch, a failure to mend, a fan with a part that fails, and a slow run."""

import logging
import time
from pathlib import Path

from stepwell import Builder, Context, Retry, Workflow, step, task

PRICES = Path(__file__).with_name("prices.csv")
log = logging.getLogger("sample")
log.setLevel(logging.INFO)


class Purchase(Workflow):
    """The bank hangs up twice, so charging is tried again. Only an order with a high score is reviewed."""

    order_id: int
    express: bool = False

    @step
    def validate(self) -> dict[str, object]:
        log.info("order %d is complete", self.order_id)
        return {"order": self.order_id, "cents": 4_200, "express": self.express}

    @task(depends_on=validate)
    def check_stock(self) -> dict[str, int]:
        return {"left": 3}

    @task(depends_on=validate)
    def check_fraud(self) -> dict[str, float]:
        return {"score": 0.1}

    @task(depends_on=check_fraud, when=lambda check_fraud: check_fraud["score"] > 0.5)
    def review(self) -> str:
        return "reviewed"

    @step(
        depends_on=[check_stock, check_fraud, review],
        retry=Retry(max_attempts=5, base_delay=1, retry_on=ConnectionError),
    )
    def charge(self, ctx: Context) -> str:
        if ctx.attempt < 3:
            raise ConnectionError("the bank hung up")
        return "charged"

    @step
    def ship(self) -> str:
        return f"parcel {self.order_id}"


class PriceList(Workflow):
    """Fails until there is a file. Write it, and retry the run: what completed is not done again."""

    @step
    def fetch(self) -> list[str]:
        return ["pen", "paper"]

    @step
    def convert(self) -> str:
        if not PRICES.exists():
            raise FileNotFoundError(f"there are no prices yet: run `touch {PRICES}`, and retry this run")
        return "converted"

    @step
    def publish(self) -> str:
        return "published"


class Training(Workflow):
    """Takes two minutes, reports how far it is, and logs."""

    epochs: int = 240

    @step
    def load(self) -> int:
        log.info("loading 60,000 pictures")
        return 60_000

    @step
    def train(self, ctx: Context) -> float:
        loss = 2.3
        for epoch in range(1, self.epochs + 1):
            ctx.check()
            time.sleep(0.5)  # the work
            loss *= 0.985
            ctx.progress(epoch, self.epochs, f"epoch {epoch}")
            log.log(logging.WARNING if epoch % 40 == 0 else logging.INFO, "epoch %d: loss %.3f", epoch, loss)
        return round(loss, 3)

    @step
    def evaluate(self, train: float) -> dict[str, float]:
        return {"loss": train, "accuracy": 0.97}


def shrink(photo: int) -> str:
    time.sleep(0.1)  # the work
    if photo == 13:
        raise ValueError("photo 13 is not a picture")
    return f"photo-{photo}-small.jpg"


def album() -> str:
    return "album.html"


def photos() -> Builder:
    """A fan: the parts do not wait for each other, and one of them fails."""
    builder = Builder("photos", on_failure="finish")
    parts = builder.fan_out(range(40), job=shrink, name=lambda i: f"shrink_{i}", args=lambda i: {"photo": i})
    builder.node("album", job=album, depends_on=parts)
    return builder
