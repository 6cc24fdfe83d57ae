"""Calls endpoints with the service, and serialises their result in the same thread.

FastAPI would check every answer a second time, write it in yet another thread, and look the service up for each request. At
hundreds of requests a second that is a third of the processor time.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

from fastapi import Response
from pydantic import BaseModel, TypeAdapter

from .service import Given, Service

JSON = "application/json"


def bound(endpoint: Callable[..., Any], service: Service, options: dict[str, Any]) -> Callable[..., Any]:
    """The function that FastAPI calls for an endpoint: it has the same parameters except the service."""
    hints = get_type_hints(endpoint, include_extras=True)
    own = [name for name, hint in hints.items() if hint is Given]
    given = dict.fromkeys(own, service)
    signature = inspect.signature(endpoint)
    parameters = [
        each.replace(annotation=hints[name]) for name, each in signature.parameters.items() if name not in own
    ]
    returns = None if hints["return"] is type(None) else hints["return"]
    if inspect.iscoroutinefunction(endpoint):
        made: Callable[..., Any] = functools.partial(endpoint, **given)
    else:
        model = options.get("response_model", returns)
        written = _Written(model, options.get("status_code", 200), validate="response_model" in options)

        def made(**values: Any) -> Response:
            response = next((each for each in values.values() if type(each) is Response), None)
            return written.answer(endpoint(**given, **values), response)

    functools.update_wrapper(made, endpoint)
    made.__signature__ = signature.replace(parameters=parameters, return_annotation=returns)  # type: ignore[attr-defined]
    return made


class _Written:
    """Serialises what an endpoint returns."""

    def __init__(self, model: Any, status: int, *, validate: bool) -> None:
        is_response = inspect.isclass(model) and issubclass(model, Response)
        self._adapter = None if is_response or model is None else TypeAdapter(model)
        self._status = status
        self._validate = validate
        """The endpoint returns data that must be validated against the type it declares."""

    def answer(self, returned: Any, response: Response | None) -> Response:
        """`response` has the status and headers that the endpoint has set, if any."""
        if isinstance(returned, Response):
            return returned
        status = self._status if response is None or not response.status_code else response.status_code
        made = Response(self._bytes(returned), status, media_type=None if status == 204 else JSON)
        if response is not None:
            made.raw_headers += [each for each in response.raw_headers if each[0] != b"content-length"]
        return made

    def _bytes(self, returned: Any) -> bytes:
        if self._adapter is None:
            return b""
        if isinstance(returned, BaseModel):
            return returned.__pydantic_serializer__.to_json(returned)
        return self._adapter.dump_json(self._adapter.validate_python(returned) if self._validate else returned)
