"""`Pattern`: a path with variables and globs, as in `daily/{date}/*.txt`.

    {name}         one or more characters of one path component, a safe name
    {name:regex}   the same, narrowed by a regular expression
    *  ?  [abc]    within one component, as in a shell; they name nothing
    a final /      a directory

>>> Pattern("final/{date}-digest.md").match("final/2026-01-15-digest.md")
{'date': '2026-01-15'}
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...errors import DefinitionError
from ...words import shown
from .paths import name_problem, path_problem

MAX_PATTERN = 500
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_VALUE = r'[^\x00-\x1f\x7f/\\:*?"<>|]'


class _Part(NamedTuple):
    """A piece of a component: literal text, a variable, or a glob."""

    kind: str  # "text", "variable" or "glob"
    text: str
    regex: str = ""


class _Component:
    """One component of a pattern."""

    def __init__(self, parts: list[_Part]) -> None:
        self.parts = parts
        self.variables = tuple(dict.fromkeys(part.text for part in parts if part.kind == "variable"))
        self.has_glob = any(part.kind == "glob" for part in parts)
        self.literal = "".join(part.text for part in parts) if all(part.kind == "text" for part in parts) else None
        loose = sum(part.kind == "glob" or (part.kind == "variable" and not part.regex) for part in parts)
        self._greedy = re.compile(self._expression(""), re.DOTALL)
        # Where two pieces can share text in several ways, the shortest and the longest reading must agree.
        self._lazy = re.compile(self._expression("?"), re.DOTALL) if loose > 1 and self.variables else None

    def _expression(self, lazy: str) -> str:
        seen: set[str] = set()
        written = []
        for part in self.parts:
            if part.kind == "text":
                written.append(re.escape(part.text))
            elif part.kind == "glob":
                written.append(part.regex.replace("*", f"*{lazy}"))
            elif part.text in seen:
                written.append(f"(?P={part.text})")
            else:
                seen.add(part.text)
                written.append(f"(?P<{part.text}>{part.regex or f'{_VALUE}+{lazy}'})")
        return "".join(written) + r"\Z"

    def match(self, name: str) -> dict[str, str] | None:
        """The values of the variables; None if the name does not match, or in more than one way."""
        found = self._greedy.match(name)
        if found is None or name[0] == ".":
            return None
        values = found.groupdict()
        for value in values.values():
            if not value.isalnum() and name_problem(value) is not None:
                return None
        if self._lazy is not None:
            other = self._lazy.match(name)
            if other is None or other.groupdict() != values:
                return None
        return values

    def is_ambiguous(self, name: str) -> bool:
        return self._lazy is not None and self._greedy.match(name) is not None and self.match(name) is None

    def fill(self, values: Mapping[str, str]) -> str:
        return "".join(values[part.text] if part.kind == "variable" else part.text for part in self.parts)


class Pattern:
    """A path with variables and globs. Two patterns of the same text are equal."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.components = _parsed(text)
        except ValueError as problem:
            raise DefinitionError(f"the pattern {shown(text)}: {problem}") from None
        self.is_directory = text.endswith("/")
        self.variables = tuple(dict.fromkeys(name for each in self.components for name in each.variables))
        self.has_glob = any(each.has_glob for each in self.components)
        self.depth = len(self.components)

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def match(self, path: str) -> dict[str, str] | None:
        """The values of the variables if the path matches as a whole, and in one way only."""
        if path.endswith("/") != self.is_directory:
            return None
        components = path.removesuffix("/").split("/")
        if len(components) != self.depth:
            return None
        return self.match_components(components)

    def match_components(self, names: list[str]) -> dict[str, str] | None:
        """The values that a path, or the beginning of one, gives the variables."""
        values: dict[str, str] = {}
        for component, name in zip(self.components, names, strict=False):
            if component.literal is not None:
                if component.literal != name:
                    return None
                continue
            found = component.match(name)
            if found is None:
                return None
            for variable, value in found.items():
                if values.setdefault(variable, value) != value:
                    return None
        return values

    def leads_to(self, names: list[str]) -> bool:
        """Whether what matches can be in a directory, given by its components, or below it."""
        if self.is_directory:
            return self.match_components(names[: self.depth]) is not None
        return len(names) < self.depth and self.match_components(names) is not None

    def covers(self, path: str) -> bool:
        """Whether a file matches, or is below a directory that does."""
        components = path.split("/")
        if self.is_directory:
            return len(components) > self.depth and self.match_components(components[: self.depth]) is not None
        return len(components) == self.depth and self.match_components(components) is not None

    def is_ambiguous(self, path: str) -> bool:
        """Whether a path matches, but one cannot tell which part of it which variable stands for."""
        names = path.removesuffix("/").split("/")
        return len(names) == self.depth and any(
            component.is_ambiguous(name) for component, name in zip(self.components, names, strict=True)
        )

    def fill(self, values: Mapping[str, str]) -> str:
        """The path for these values; a pattern with globs has none. Values and path are checked by `checked_path`."""
        return "/".join(each.fill(values) for each in self.components) + ("/" if self.is_directory else "")

    def format_for(self, variables: Sequence[str]) -> str:
        """A text for `str.format` that makes a path of the values of these variables, in order. Others stay as they are."""
        return self.fill(
            {
                name: f"{{{variables.index(name)}}}" if name in variables else f"{{{{{name}}}}}"
                for name in self.variables
            }
        )

    def partly_filled(self, values: Mapping[str, str]) -> str:
        """The path with the variables that have no value left as they are: `chapters/moby/{number}.txt`."""
        return self.fill({name: values.get(name, f"{{{name}}}") for name in self.variables})

    def overlaps(self, other: Pattern) -> bool:
        """Whether one path could match both. What is below a directory is part of it."""
        mine, theirs = self.components, other.components
        if self.is_directory and other.depth > self.depth:
            theirs = theirs[: self.depth]
        elif other.is_directory and self.depth > other.depth:
            mine = mine[: other.depth]
        elif self.depth != other.depth or self.is_directory != other.is_directory:
            return False
        return all(_may_agree(a, b) for a, b in zip(mine, theirs, strict=True))


def _parsed(text: str) -> tuple[_Component, ...]:
    if not isinstance(text, str) or not text.strip():
        raise ValueError("some text is needed, as in daily/{date}/*.txt")
    if len(text) > MAX_PATTERN:
        raise ValueError(f"it is longer than {MAX_PATTERN} characters")
    if text.startswith("/"):
        raise ValueError("it begins with /, but patterns are relative to the root of the pipeline")
    components = tuple(_Component(_parts(part)) for part in _split(text.removesuffix("/")))
    for component in components:
        if component.literal is not None and (problem := path_problem(component.literal)):
            raise ValueError(f"{component.literal!r}: {problem}")
    return components


def _split(text: str) -> list[str]:
    """At every `/` that is not inside braces."""
    found, depth = [""], 0
    for character in text:
        depth += (character == "{") - (character == "}")
        if character == "/" and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return found


def _parts(text: str) -> list[_Part]:
    if text == "**":
        raise ValueError("** is not known: a glob matches within one path component; a final / takes a whole directory")
    parts: list[_Part] = []
    position = 0
    while position < len(text):
        character = text[position]
        if character == "{":
            position, part = _variable(text, position)
        elif character == "[":
            end = text.find("]", position + 2)
            if end < 0:
                raise ValueError("a [ has no ]")
            inside = text[position + 1 : end]
            negated, inside = inside[0] in "!^", inside.lstrip("!^")
            part = _Part(
                "glob",
                text[position : end + 1],
                f"[{'^' if negated else ''}{re.escape(inside).replace(chr(92) + '-', '-')}]",
            )
            position = end + 1
        elif character in "*?":
            part = _Part("glob", character, "[^/]*" if character == "*" else "[^/]")
            position += 1
        elif character == "}":
            raise ValueError("a } has no {")
        else:
            part = _Part("text", character)
            position += 1
        if parts and part.kind == parts[-1].kind == "text":
            part = _Part("text", parts.pop().text + part.text)
        if parts and {part.kind, parts[-1].kind} == {"variable"} and not (part.regex and parts[-1].regex):
            raise ValueError(
                f"{{{parts[-1].text}}}{{{part.text}}}: nothing tells where one variable ends and the next begins; put "
                f"text between them, or narrow both: {{{part.text}:regex}}"
            )
        parts.append(part)
    if not parts:
        raise ValueError("it has an empty component")
    return parts


def _variable(text: str, start: int) -> tuple[int, _Part]:
    """The variable whose brace opens at `start`, and where the text goes on. A regex may have braces of its own."""
    depth, end = 0, start
    for end in range(start, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth == 0:
            break
    else:
        raise ValueError("a { has no }")
    name, _, regex = text[start + 1 : end].partition(":")
    if not _VARIABLE.match(name):
        raise ValueError(f"{{{name}}}: a variable has the form of a Python name")
    if regex:
        try:
            compiled = re.compile(regex)
        except re.error as error:
            raise ValueError(f"{{{name}:{regex}}}: {error}") from None
        if compiled.groups:
            raise ValueError(f"{{{name}:{regex}}}: use (?:...) for groups")
        regex = f"(?:{regex})"
    return end + 1, _Part("variable", name, regex)


def _may_agree(a: _Component, b: _Component) -> bool:
    """Whether one name could match both components: wildcards against wildcards, literally otherwise."""
    if a.literal is not None and b.literal is not None:
        return a.literal == b.literal
    if a.literal is not None:
        return b.match(a.literal) is not None
    if b.literal is not None:
        return a.match(b.literal) is not None
    x, y = _letters(a), _letters(b)
    reach = {(0, 0)}
    seen = set(reach)
    while reach:
        i, j = reach.pop()
        if i == len(x) and j == len(y):
            return True
        steps = []
        if i < len(x) and x[i] is None:
            steps.append((i + 1, j))
            if j < len(y):
                steps.append((i, j + 1))
        if j < len(y) and y[j] is None:
            steps.append((i, j + 1))
            if i < len(x):
                steps.append((i + 1, j))
        if i < len(x) and j < len(y) and x[i] == y[j]:
            steps.append((i + 1, j + 1))
        for step in steps:
            if step not in seen:
                seen.add(step)
                reach.add(step)
    return False


def _letters(component: _Component) -> list[str | None]:
    """The letters of a component; None stands for any text."""
    letters: list[str | None] = []
    for part in component.parts:
        letters += part.text if part.kind == "text" else [None]
    return letters
