"""`@effect("name")`: a function whose calls inside bodies are recorded."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from ...base.place import caller
from ...errors import DefinitionError
from .recorder import Call
from .repeatable import Repeatable, current

Function = TypeVar("Function", bound=Callable[..., Any])

_CONTEXT = "ctx"


def effect(
    name: str, *, request: Callable[..., Any] | None = None, durable: bool = False
) -> Callable[[Function], Function]:
    """Record every call of this function inside a body as an effect. Outside of bodies it is just called.

        @effect("exchange rate")
        def fetch_rate(base: str, currency: str) -> float: ...

        @effect("charge", request=lambda card, amount: {"amount": amount}, durable=True)
        async def charge(card: Card, amount: int) -> dict: ...

    The body is found automatically, or given: a parameter named `ctx` is not part of the request. `request` makes what
    identifies a call of its arguments, if those are not JSON.
    """
    where = str(caller())
    if not isinstance(name, str) or not name.strip():
        raise DefinitionError(f'@effect({name!r}): expected a name, as in @effect("exchange rate")', where=where)

    def decorated(function: Function) -> Function:
        if not callable(function):
            raise DefinitionError(f"@effect({name!r}) goes on a function, not on {function!r}", where=where)
        signature = inspect.signature(function)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            ctx_argument = bound.arguments.pop(_CONTEXT, None)
            ctx = ctx_argument if isinstance(ctx_argument, Repeatable) else current()
            if ctx is None:
                return function(*args, **kwargs)
            identity = dict(bound.arguments) if request is None else request(*bound.args, **bound.kwargs)
            return ctx.perform(Call(name, function, args, kwargs, identity, durable))

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def call_later(*args: Any, **kwargs: Any) -> Any:
                return await call(*args, **kwargs)

            return cast(Function, call_later)
        return cast(Function, call)

    return decorated
