"""Jobs and workflows that tests find by address."""

from __future__ import annotations

from typing import Any

from stepwell.define import Builder, Workflow, step, task


def charge(amount: int = 0, currency: str = "EUR", **more: Any) -> str:
    return f"{amount} {currency}"


def summarise(validate: dict[str, Any], ctx: Any) -> dict[str, Any]:
    return {"validated": validate, "ctx": ctx}


def with_ctx(item: int, ctx: Any) -> tuple[int, Any]:
    return item, ctx


def spoil(lines: list[int]) -> list[int]:
    lines.append(99)
    return lines


async def fetch(item: Any = 0, **more: Any) -> Any:
    return item * 2


def numbers() -> Any:
    yield 1


def no_parameters() -> str:
    return "done"


not_a_function = 7


class Register:
    """A cash register: its bound methods are no jobs, its static ones are."""

    def ring(self) -> None: ...

    @staticmethod
    def total(amount: int) -> int:
        return amount


class ShopWorkflow(Workflow):
    order_id: int
    tags: list[str] = []  # noqa: RUF012

    @step
    def validate(self) -> dict[str, Any]:
        return {"order": self.order_id}

    @step
    def collect(self, validate: dict[str, Any]) -> list[Any]:
        return [self.order_id, validate, self.tags]

    @task(depends_on=validate)
    async def look(self, ctx: Any, validate: dict[str, Any]) -> tuple[Any, Any]:
        return ctx, validate

    @step
    def spoil(self) -> list[str]:
        self.tags.append("spoilt")
        return self.tags

    report = step(job=summarise)


def nightly() -> Builder:
    return Builder("nightly")
