"""All templates of one node's config, compiled together."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ..codec import json_path
from .errors import TemplateError
from .frames import Reference, Scope
from .limits import Budget
from .template import Template, compile_expression, compile_template, is_template

Path = tuple[str | int, ...]
MakeSecret = Callable[[str], Any]

_Build = Callable[[Scope, MakeSecret, Budget], Any]
_SECRET = re.compile(r"secret:([A-Za-z_][A-Za-z0-9_.\-]{0,199})\Z")
_PLAIN = frozenset({int, float, bool, type(None)})


class Dynamic(NamedTuple):
    """A template or expression in a config."""

    path: Path
    compiled: Template


class Config:
    """The config of a node, with its templates compiled. Keys are never templates.

    >>> compile_config({"url": "{{ input.url }}", "retries": 3}).render({"input": {"url": "https://example.com"}})
    {'url': 'https://example.com', 'retries': 3}
    """

    __slots__ = ("_build", "dynamic")

    def __init__(self, build: _Build, dynamic: tuple[Dynamic, ...]) -> None:
        self._build = build
        self.dynamic = dynamic
        """Its templates and expressions, each with its place."""

    @property
    def references(self) -> Iterator[tuple[Path, Reference]]:
        for path, compiled in self.dynamic:
            for reference in compiled.references:
                yield path, reference

    def render(self, scope: Scope, make_secret: MakeSecret = str) -> Any:
        """The config with every template rendered.

        Where the text itself is exactly `secret:NAME` it is what `make_secret("NAME")` gives. What a template gave is never
        looked at again: neither as a template nor as a secret. All its templates together may cost as much as one.
        """
        return self._build(scope, make_secret, Budget())


def compile_config(
    config: Any, expressions: Collection[str] = (), problems: list[tuple[Path, TemplateError]] | None = None
) -> Config:
    """Compile every template of a config. The top-level fields in `expressions` are expressions without braces.

    With `problems`, what is written wrongly is added there and left out; else the first raises its TemplateError.
    """
    compiling = _Compiling(frozenset(expressions), problems)
    return Config(compiling.value(config, ()), tuple(compiling.dynamic))


class _Compiling:
    def __init__(self, expressions: frozenset[str], problems: list[tuple[Path, TemplateError]] | None) -> None:
        self.dynamic: list[Dynamic] = []
        self._expressions = expressions
        self._problems = problems

    def value(self, value: Any, path: Path) -> _Build:
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, Mapping):
            fields = [(key, self.value(each, (*path, key))) for key, each in value.items()]
            return lambda scope, secret, budget: {key: build(scope, secret, budget) for key, build in fields}
        if isinstance(value, list | tuple):
            items = [self.value(each, (*path, place)) for place, each in enumerate(value)]
            return lambda scope, secret, budget: [build(scope, secret, budget) for build in items]
        assert type(value) in _PLAIN, value
        return lambda scope, secret, budget: value

    def _text(self, text: str, path: Path) -> _Build:
        reference = _SECRET.match(text)
        if reference:
            name = reference[1]
            return lambda scope, secret, budget: secret(name)
        is_expression = len(path) == 1 and path[0] in self._expressions
        if not is_expression and not is_template(text):
            return lambda scope, secret, budget: text
        try:
            compiled = compile_expression(text) if is_expression else compile_template(text)
        except TemplateError as error:
            error.path = json_path(path)
            if self._problems is None:
                raise
            self._problems.append((path, error))
            return lambda scope, secret, budget: text
        self.dynamic.append(Dynamic(path, compiled))

        def build(scope: Scope, secret: MakeSecret, budget: Budget) -> Any:
            try:
                return compiled.render(scope, budget)
            except TemplateError as error:
                error.path = json_path(path)
                raise

        return build
