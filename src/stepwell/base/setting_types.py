"""What each setting may be, and the form of all. Importing this module loads pydantic; `settings` does when there are some."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_type_hints
from urllib.parse import urlsplit

from annotated_types import MaxLen, MinLen
from pydantic import AfterValidator, BeforeValidator, create_model

from ..errors import InputError
from .forms.problems import Problems
from .forms.reading import Expected, Form, read_form
from .networks import allowed_networks
from .services import SecretName, SecretSource, Service, ServiceName


def _parts(value: Any) -> Any:
    """In the environment a list has commas in between."""
    items = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    return tuple(items) if isinstance(items, list) else items


def _number(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return int(value)
    except ValueError:
        return float(value)


def _programs(value: Any) -> Any:
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def _table(value: Any) -> Any:
    """In the environment a table is JSON."""
    try:
        table = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        table = None
    if not isinstance(table, Mapping):
        raise ValueError("expected a table, one entry for each name")
    return dict(table)


def _importable(names: tuple[str, ...]) -> tuple[str, ...]:
    if not all(part.isidentifier() for name in names for part in name.split(".")):
        raise ValueError("not the name of a module")
    return names


def _networks(names: tuple[str, ...]) -> tuple[str, ...]:
    try:
        allowed_networks(names)
    except InputError as error:
        raise ValueError(str(error)) from None
    return names


def _trace_url(template: str) -> str:
    parts = urlsplit(template)
    literal = template.replace("{run}", "").replace("{node}", "")
    strange = re.search(r"[{}\s\x00-\x1f\x7f\\]", literal)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or "{" in parts.netloc
        or "@" in parts.netloc
        or strange
    ):
        raise ValueError("not such a template")
    return template


Url = Annotated[str, Expected("a URL")]
Count = Annotated[int, BeforeValidator(_number), Expected("a whole number")]
Duration = Annotated[float, BeforeValidator(_number), Expected("a number of seconds")]
Names = Annotated[tuple[Annotated[str, MinLen(1)], ...], BeforeValidator(_parts)]
Modules = Annotated[Names, AfterValidator(_importable), Expected("a list of names of modules")]
Pipelines = Annotated[Names, Expected("a list of pipelines (module:name, or a file)")]
Networks = Annotated[Names, AfterValidator(_networks), Expected("a list of networks, as 10.0.0.0/8 or 127.0.0.1:8080")]
Hosts = Annotated[Names, Expected("a list of names, as stepwell.example.com")]
Programs = Annotated[bool | Names, BeforeValidator(_programs), Expected("a list of programs, or true for any")]
Folder = Annotated[str, Expected("the path of a folder")]
Server = Annotated[str, Expected("the URL of a server, as http://127.0.0.1:8765")]
Token = Annotated[str, Expected("the text of a token", secret=True)]
Environment = Annotated[str, MinLen(1), MaxLen(40), Expected("a name of 1 to 40 characters, as production")]
ColourName = Literal["grey", "red", "orange", "green", "blue", "purple"]
"""Colours that people can tell apart in both themes: `--env-...` in ui/src/styles.css."""
Colour = Annotated[ColourName, Expected(f"a colour: {', '.join(get_args(ColourName))}")]
TraceUrl = Annotated[
    str, AfterValidator(_trace_url), Expected("an http or https URL, as https://traces.example/{run}?node={node}")
]
Services = Annotated[dict[ServiceName, Service], BeforeValidator(_table)]
Secrets = Annotated[dict[SecretName, SecretSource], BeforeValidator(_table)]


class _Table(Form):
    noun = "the table of settings"
    contents = "a table of settings"


@cache
def _form_of(settings: type) -> type[Form]:
    """The form of the fields of `Settings`, whose annotations are names of this module."""
    hints: dict[str, Any] = get_type_hints(settings, globals(), include_extras=True)
    defaults = {field.name: {} if field.default is MISSING else field.default for field in fields(settings)}
    form: Any = {name: (hints[name], default) for name, default in defaults.items()}
    return create_model("SettingsForm", __base__=_Table, **form)


def read_table(settings: type, table: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """The settings that a table has."""
    form = read_form(_form_of(settings), dict(table), problems)
    return {} if form is None else {name: getattr(form, name) for name in form.model_fields_set}
