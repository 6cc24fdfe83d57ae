"""`Pattern`: a path with variables and globs, as in `daily/{date}/*.txt`.

    {name}         one or more characters within one path component; together they are a safe name
    {name:regex}   the same, but the regular expression must match
    *  ?  [abc]    as in a shell, within one component; they set no variable
    **             any number of directories, or none; once in a pattern
    a final /      a directory

>>> Pattern("final/{date}-digest.md").match("final/2026-01-15-digest.md")
{'date': '2026-01-15'}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ...base.matching import Matcher, PatternError
from ...base.words import shown
from ...errors import DefinitionError
from .paths import path_problem, value_problem

MAX_PATTERN = 500
DEEP = "**"
Item = TypeVar("Item")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_VALUE = r'[^\x00-\x1f\x7f/\\:*?"<>|{}]'


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
        self.is_deep = [part.text for part in parts] == [DEEP]
        self.literal = "".join(part.text for part in parts) if all(part.kind == "text" for part in parts) else None
        loose = sum(part.kind == "glob" or (part.kind == "variable" and not part.regex) for part in parts)
        self._is_quick = self._can_be_tried()
        self._greedy = self._compiled("")
        # Where text can be split between two parts in several ways, the shortest and the longest split must agree.
        self._lazy = self._compiled("?") if loose > 1 and self.variables else None

    def _can_be_tried(self) -> bool:
        """Whether there are few splits to try: `re`, which is quicker, tries all of them."""
        long = sum(part.text == "*" for part in self.parts if part.kind == "glob")
        return long + len(self.variables) <= 2 and not any(part.regex for part in self.parts if part.kind == "variable")

    def _compiled(self, lazy: str) -> Any:
        expression = self._expression(lazy)
        try:
            return re.compile(expression, re.DOTALL) if self._is_quick else Matcher(f"(?s){expression}")
        except (re.error, PatternError) as error:
            raise ValueError(f"{''.join(part.text for part in self.parts)}: {error}") from None

    def _values(self, found: Any) -> dict[str, str] | None:
        """The values of the variables in a match; None if one has two."""
        if self._is_quick:
            return dict(found.groupdict())
        names = [part.text for part in self.parts if part.kind == "variable"]
        values = dict(zip(names, found.groups(), strict=True))
        return values if all(values[name] == value for name, value in zip(names, found.groups(), strict=True)) else None

    def _expression(self, lazy: str) -> str:
        seen: set[str] = set()
        written = []
        for part in self.parts:
            if part.kind == "text":
                written.append(re.escape(part.text))
            elif part.kind == "glob":
                written.append(part.regex.replace("*", f"*{lazy}"))
            elif not self._is_quick:
                written.append(f"({part.regex or f'{_VALUE}+{lazy}'})")
            elif part.text in seen:
                written.append(f"(?P={part.text})")
            else:
                seen.add(part.text)
                written.append(f"(?P<{part.text}>{part.regex or f'{_VALUE}+{lazy}'})")
        return "".join(written) + r"\Z"

    def match(self, name: str) -> dict[str, str] | None:
        """Return the values of the variables, or None if the name does not match or matches in more than one way."""
        found = self._greedy.match(name)
        if found is None or name[:1] in ("", "."):
            return None
        values = self._values(found)
        for value in values.values() if values is not None else ():
            if not value.isalnum() and value_problem(value) is not None:
                return None
        if self._lazy is not None and values is not None:
            other = self._lazy.match(name)
            if other is None or self._values(other) != values:
                return None
        return values

    def is_ambiguous(self, name: str) -> bool:
        return self._lazy is not None and self._greedy.match(name) is not None and self.match(name) is None

    def fill(self, values: Mapping[str, str]) -> str:
        return "".join(values[part.text] if part.kind == "variable" else part.text for part in self.parts)


class Pattern:
    """A path with variables and globs. Patterns with the same text are equal."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.components = _parsed(text)
        except (ValueError, re.error, OverflowError, RecursionError) as problem:
            raise DefinitionError(f"the pattern {shown(text)}: {problem}") from None
        self.is_directory = text.endswith("/")
        self.variables = tuple(dict.fromkeys(name for each in self.components for name in each.variables))
        self.has_glob = any(each.has_glob for each in self.components)
        self.is_loose = self.has_glob or self.is_directory
        """Whether it matches names that nobody spelled out."""
        self._deep = next((place for place, each in enumerate(self.components) if each.is_deep), None)
        """Where `**` is."""

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def match(self, path: str) -> dict[str, str] | None:
        """Return the values of the variables if the whole path matches, and in only one way."""
        if path.endswith("/") != self.is_directory:
            return None
        return self._matched(self._pairs(path.removesuffix("/").split("/")))

    def match_folder(self, names: list[str]) -> dict[str, str] | None:
        """Match a directory: with the pattern of a directory as a whole, otherwise with all but the last component."""
        return self._matched(self._pairs(names, 0 if self.is_directory else 1))

    def begins_with(self, names: list[str]) -> bool:
        """Whether the first components match these names."""
        return self._matched(list(zip(self.components, names, strict=False))) is not None

    def _pairs(self, names: list[str], without_last: int = 0) -> list[tuple[_Component, str]] | None:
        """Return which component has to match which name, or None if there are too many or too few names."""
        components = self.components[: len(self.components) - without_last]
        if self._deep is None:
            return list(zip(components, names, strict=True)) if len(names) == len(components) else None
        last = len(components) - self._deep - 1
        if len(names) < self._deep + last:
            return None
        ends = zip(components[self._deep + 1 :], names[len(names) - last :], strict=True)
        return [*zip(components[: self._deep], names[: self._deep], strict=True), *ends]

    @staticmethod
    def _matched(pairs: list[tuple[_Component, str]] | None) -> dict[str, str] | None:
        values: dict[str, str] = {}
        for component, name in pairs if pairs is not None else ():
            if component.literal is not None:
                if component.literal != name:
                    return None
                continue
            match = component.match(name)
            if match is None:
                return None
            for variable, value in match.items():
                if values.setdefault(variable, value) != value:
                    return None
        return None if pairs is None else values

    def leads_to(self, names: list[str]) -> bool:
        """Whether a path that matches, perhaps in more than one way, can be in or below this directory."""
        if self._deep is None and not self.is_directory and len(names) >= len(self.components):
            return False
        pairs = list(zip(self.components, names[: self._deep], strict=False))
        return self._matched([(each, name) for each, name in pairs if not each.is_ambiguous(name)]) is not None

    def covers(self, path: str) -> bool:
        """Whether a file matches, or is in or below a directory that does."""
        names = path.split("/")
        if self.is_directory:
            return len(names) > len(self.components) and self.begins_with(names)
        return self._matched(self._pairs(names)) is not None

    def is_ambiguous(self, path: str) -> bool:
        """Whether a path matches in more than one way, so that the variables have no certain values."""
        return _is_ambiguous(self._pairs(path.removesuffix("/").split("/")))

    def is_ambiguous_folder(self, names: list[str]) -> bool:
        """The same of a directory in which a path that matches can be, or that is one itself."""
        return _is_ambiguous(self._pairs(names, 0 if self.is_directory else 1))

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the path for these values, unchecked (`checked_path` does that). A pattern with globs has none."""
        return "/".join(each.fill(values) for each in self.components) + ("/" if self.is_directory else "")

    def format_for(self, variables: Sequence[str]) -> str:
        """Return a text for `str.format`, to be given the values of these variables in order. Others stay as they are."""
        places = {name: f"{{{place}}}" for place, name in enumerate(variables)}
        return self.fill({name: places.get(name, f"{{{{{name}}}}}") for name in self.variables})

    def partly_filled(self, values: Mapping[str, str]) -> str:
        """Return the path, leaving variables without a value as they are: `chapters/moby/{number}.txt`."""
        return self.fill({name: values.get(name, f"{{{name}}}") for name in self.variables})

    def overlaps(self, other: Pattern) -> bool:
        """Whether one path could match both. A directory includes everything below it."""
        # Every stage is compared with every other one, and nearly always their first names already differ.
        one, another = self.components[0].literal, other.components[0].literal
        if one is not None and another is not None and one != another:
            return False
        return _can_agree(self._wild_components(), other._wild_components(), _components_can_agree)

    def _wild_components(self) -> list[_Component | None]:
        components = (*self.components, *_BELOW) if self.is_directory else self.components
        return [None if each.is_deep else each for each in components]


def _is_ambiguous(pairs: list[tuple[_Component, str]] | None) -> bool:
    return any(component.is_ambiguous(name) for component, name in pairs or ())


def _parsed(text: str) -> tuple[_Component, ...]:
    if not isinstance(text, str) or not text.strip():
        raise ValueError("expected some text, as in daily/{date}/*.txt")
    if len(text) > MAX_PATTERN:
        raise ValueError(f"it is longer than {MAX_PATTERN} characters")
    if text.startswith("/"):
        raise ValueError("it begins with /, but patterns are relative to the root of the pipeline")
    components = tuple(_Component(_parts(part)) for part in _split(text.removesuffix("/")))
    if sum(component.is_deep for component in components) > 1:
        raise ValueError(f"{DEEP} can be in it once")
    if components[-1].is_deep:
        if text.endswith("/"):
            raise ValueError(f"{DEEP}/ names no directory; a final / takes a whole directory with all that is below it")
        components = (*components, _Component(_parts("*")))
    for component in components:
        if component.literal is not None and (problem := path_problem(component.literal)):
            raise ValueError(f"{component.literal!r}: {problem}")
    return components


def _split(text: str) -> list[str]:
    """Split at every `/` that is not inside braces."""
    found, depth = [""], 0
    for character in text:
        depth += (character == "{") - (character == "}")
        if character == "/" and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return found


def _parts(text: str) -> list[_Part]:
    if text == DEEP:
        return [_Part("glob", DEEP, "")]
    if DEEP in text:
        raise ValueError(f"{text!r}: {DEEP} stands alone between slashes, as in logs/{DEEP}/*.txt")
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
            if not inside or "--" in inside:
                problem = "no character" if not inside else "-- is neither a range nor a character"
                raise ValueError(f"{text[position : end + 1]}: {problem} between the brackets")
            regex = f"[{'^' if negated else ''}{re.escape(inside).replace(chr(92) + '-', '-')}]"
            part = _Part("glob", text[position : end + 1], regex)
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
    """Return the variable whose brace opens at `start`, and the position after it. A regex may contain braces."""
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
            groups = Matcher(regex).groups
        except PatternError as error:
            raise ValueError(f"{{{name}:{regex}}}: {error}") from None
        if groups:
            raise ValueError(f"{{{name}:{regex}}}: use (?:...) for groups")
        regex = f"(?:{regex})"
    return end + 1, _Part("variable", name, regex)


def _can_agree(one: Sequence[Item | None], other: Sequence[Item | None], agree: Callable[[Item, Item], bool]) -> bool:
    """Whether one sequence could match both. None stands for any number of items."""
    waiting, seen = [(0, 0)], {(0, 0)}
    while waiting:
        i, j = waiting.pop()
        if i == len(one) and j == len(other):
            return True
        a, b = one[i : i + 1], other[j : j + 1]  # empty at the end
        if None in a or None in b:
            steps = [(i + 1, j)] * len(a) + [(i, j + 1)] * len(b)
        else:
            pairs = zip(a, b, strict=False)
            steps = [(i + 1, j + 1) for x, y in pairs if x is not None and y is not None and agree(x, y)]
        waiting += [step for step in steps if step not in seen]
        seen.update(steps)
    return False


def _components_can_agree(one: _Component, other: _Component) -> bool:
    """Whether one name could match both: text is compared, a variable or glob may stand for any text."""
    if one.literal is not None:
        return one.literal == other.literal if other.literal is not None else other.match(one.literal) is not None
    if other.literal is not None:
        return one.match(other.literal) is not None
    return _can_agree(_letters(one), _letters(other), str.__eq__)


def _letters(component: _Component) -> list[str | None]:
    """Return the letters of a component, with None for any text."""
    return [letter for part in component.parts for letter in (part.text if part.kind == "text" else (None,))]


_BELOW = _parsed(f"{DEEP}/*")
