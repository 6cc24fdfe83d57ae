"""Handlers as data: enough to check the documents that name them where their code is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..base.forms.problems import Problem
from ..base.schemas import problems_of
from ..base.secret_refs import references_of
from ..base.words import suggestion
from ..core.graph import Retry
from .configs import Later, is_known_later, kind_of
from .definition import Handler

_FIELDS = ("description", "version", "timeout", "side_effects", "keeps_secrets", "takes_secrets")


@dataclass(frozen=True, slots=True, eq=False)
class DescribedHandler(Handler):
    """A handler whose code is elsewhere. It checks configs by their JSON Schema and cannot be called."""

    schema: Mapping[str, Any] | None = field(default=None, repr=False)
    outputs: frozenset[str] | None = None
    is_open: bool = True
    """Its config may have fields that the schema does not name."""

    def config_schema(self) -> dict[str, Any]:
        return {"type": "object"} if self.schema is None else dict(self.schema)

    def output_fields(self) -> frozenset[str] | None:
        return self.outputs

    def check_config(self, config: object, later: Later | None = None) -> list[Problem]:
        if not isinstance(config, Mapping):
            return [Problem((), f"expected an object, got {kind_of(config)}")]
        known = list(self.config_schema().get("properties", {}))
        problems = [*self._secrets_not_taken(references_of(config))]
        for name in () if self.is_open else config:
            if name not in known:
                problems.append(Problem((name,), f"unknown field{f'; {suggestion(name, known)}' if known else ''}"))
        for problem in problems_of(self.config_schema(), dict(config)):
            path = problem.place
            is_missing = bool(path) and _lacks(config, path)
            if (is_missing or not is_known_later(config, path, later)) and all(each.place != path for each in problems):
                problems.append(problem)
        return problems


def _lacks(config: Any, path: tuple[str | int, ...]) -> bool:
    """Whether a required field is missing: its object is there, and it is not."""
    for step in path[:-1]:
        config = config[step]
    return isinstance(config, Mapping) and path[-1] not in config


def to_data(handler: Handler) -> dict[str, Any]:
    """A handler as JSON."""
    outputs = handler.output_fields()
    is_open = handler.config is None or handler.config.model_config.get("extra") == "allow"
    return {
        **{name: getattr(handler, name) for name in _FIELDS},
        "config": None if handler.config is None else handler.config_schema(),
        "open": is_open,
        "output": None if outputs is None else sorted(outputs),
        "example": dict(handler.example),
        "retry": None if handler.retry is None else handler.retry.to_dict(),
        "expressions": sorted(handler.expressions),
        "async": handler.is_async,
    }


def from_data(name: str, data: Mapping[str, Any]) -> DescribedHandler:
    """The handler that `to_data` described."""
    outputs = data.get("output")
    return DescribedHandler(
        name,
        _elsewhere_async if data.get("async") else _elsewhere,
        example=data.get("example", {}),
        retry=None if data.get("retry") is None else Retry.from_dict(data["retry"]),
        expressions=frozenset(data.get("expressions", ())),
        where="a worker",
        schema=data.get("config"),
        outputs=None if outputs is None else frozenset(outputs),
        is_open=data.get("open", True),
        **{field: data[field] for field in _FIELDS if field in data},
    )


def _elsewhere(ctx: Any, config: Any) -> Any:
    raise AssertionError("the code of this handler is elsewhere")


async def _elsewhere_async(ctx: Any, config: Any) -> Any:
    raise AssertionError("the code of this handler is elsewhere")
