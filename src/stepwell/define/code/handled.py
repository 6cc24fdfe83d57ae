"""The body of a node whose args have templates: they are rendered and given to its handler or function."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from ...base.codec import encode
from ...base.ids import NodeId
from ...base.secret_refs import SecretRef, references
from ...base.templates import Config, Expression, NodeOutput, SkippedOutput, compile_config
from ...base.types.shapes import Shape
from ...core.graph import NodeSpec
from ...errors import DefinitionError
from ...handlers import Handler, Handlers
from .invoke import Job, copied_values

RENDERED = "config"
"""The name of the rendered config in the outcome of an attempt."""
MAX_KEPT = 64 * 1024
"""Bytes of a rendered config that are kept; of a larger one only its size."""


class HandledBody(NamedTuple):
    """A node of a document. Its templates see only the outputs in `needs`."""

    args: Mapping[str, Any]
    needs: tuple[NodeId, ...]
    handler: Handler
    handlers: Handlers
    config: Config
    reads: frozenset[str]
    """The names that its templates read."""
    is_function: bool
    returns: Shape | None

    @classmethod
    def of(
        cls, spec: NodeSpec, handler: Handler, handlers: Handlers, *, is_function: bool, returns: Shape | None = None
    ) -> HandledBody:
        config = compile_config(spec.args, handler.expressions)
        reads = frozenset(reference.name for _, reference in config.references)
        return cls(spec.args, spec.needs, handler, handlers, config, reads, is_function, returns)

    @classmethod
    def of_function(cls, spec: NodeSpec) -> HandledBody:
        """Of a node whose function nobody has imported: it can be rendered, but not invoked."""
        return cls.of(spec, Handler(spec.job or spec.name, _not_here), Handlers(), is_function=True)

    @property
    def is_async(self) -> bool:
        return self.handler.is_async

    def render(self, input: Mapping[str, Any], ctx: Any, outputs: Mapping[str, Any]) -> dict[str, Any]:
        """The config as the body gets it, with references to secrets. If templates changed it, it is kept with the attempt."""
        rendered: dict[str, Any] = self.config.render(_scope(self.needs, self.reads, input, ctx, outputs), SecretRef)
        if "input" in self.reads:  # it may hold parts of the input, which all attempts share
            rendered = copied_values(rendered)
        if self.config.dynamic:
            ctx.outcome[RENDERED] = _kept(rendered)
        return rendered

    def invoke(self, input: Mapping[str, Any], ctx: Any, outputs: Mapping[str, Any]) -> Any:
        """The result of the handler, or a coroutine that gives it when `is_async`."""
        return self.handlers.call(self.handler, ctx, self.render(input, ctx, outputs))


class ExpressionCondition(NamedTuple):
    """The condition of a node of a document: an expression in `{{ }}`."""

    needs: tuple[NodeId, ...]
    expression: Expression

    @property
    def name(self) -> str:
        return self.expression.text.strip()

    def holds(self, input: Mapping[str, Any], ctx: Any, outputs: Mapping[str, Any]) -> bool:
        reads = {reference.name for reference in self.expression.references}
        return bool(self.expression.evaluate(_scope(self.needs, reads, input, ctx, outputs)))


def _scope(
    needs: Iterable[NodeId], reads: Collection[str], input: Mapping[str, Any], ctx: Any, outputs: Mapping[str, Any]
) -> dict[str, Any]:
    """What templates may name: the outputs of ancestors, the input and the run."""
    scope: dict[str, Any] = {
        name: NodeOutput(outputs[name]) if name in outputs else SkippedOutput(name) for name in needs
    }
    if "run" in reads:
        scope["run"] = {"id": ctx.run_id}
    if "input" in reads:
        scope["input"] = input if type(input) is dict else dict(input)
    return scope


def _not_here(ctx: Any, config: Any) -> Any:
    raise NotImplementedError


def function_handler(address: str, job: Job) -> Handler:
    """A function as a handler: the config becomes its arguments."""

    def call(ctx: Any, config: Mapping[str, Any]) -> Any:
        given = dict(config)
        job.signature.convert(given)
        if job.takes_ctx:
            given["ctx"] = ctx
        return job.function(**given)

    async def call_later(ctx: Any, config: Mapping[str, Any]) -> Any:
        return await call(ctx, config)

    return Handler(address, call_later if job.is_async else call)


def rendered_for_process(
    spec: NodeSpec, body: HandledBody, input: Mapping[str, Any], ctx: Any, outputs: Mapping[str, Any]
) -> NodeSpec:
    """The node with its args rendered, for a process without templates."""
    if not body.is_function:
        raise DefinitionError(
            f"node {spec.name!r}: a handler runs in a thread or on the loop; only a function can have a process"
        )
    args = body.render(input, ctx, outputs)
    if any(references(args)):
        raise DefinitionError(f"node {spec.name!r}: a secret cannot be handed to a process")
    return spec._replace(args=args, needs=(), templated=False)


def _kept(rendered: dict[str, Any]) -> Any:
    """A copy, because bodies may change what they get, with secrets as references."""
    size = [0]
    config = _copied(rendered, size)
    return config if size[0] <= MAX_KEPT else {"bytes": len(encode(config))}


def _copied(value: Any, size: list[int]) -> Any:
    """A copy; its approximate size as JSON is added to `size`."""
    if type(value) is str:
        size[0] += len(value)
        return value
    size[0] += 8
    if type(value) is dict:
        return {key: _copied(each, size) for key, each in value.items()}
    if type(value) is list:
        return [_copied(each, size) for each in value]
    return repr(value) if type(value) is SecretRef else value
