"""Following what a function uses: the functions, classes and constants of the project, as far as they can be found."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

from ...importable import importable_name, module_of
from ..states.single import stamp_of
from . import syntax
from .code import Code, digest
from .loaded import is_project_file
from .syntax import written

_PURE_CALLS = frozenset({
    "bool", "bytes", "compile", "date", "datetime", "Decimal", "dict", "float", "Fraction", "frozenset", "int", "len", "list",
    "max", "min", "namedtuple", "NewType", "Path", "PurePath", "PurePosixPath", "range", "round", "set", "sorted", "str", "sum",
    "timedelta", "timezone", "tuple", "TypeVar",
})  # fmt: skip
"""Calls whose values depend only on the source, not on the machine."""
_BUILT_IN: tuple[type, ...] = (types.BuiltinFunctionType, types.MethodWrapperType)
_BLIND = {"getattr", "globals", "eval", "exec", "__import__", "import_module", "vars", "locals"}
_PLAIN = (str, bytes, int, float, bool, complex, type(None), type(...))


def code_of(
    function: Any, *, version: str | None = None, uses: Iterable[Any] = (), skipped: Iterable[type] = ()
) -> Code:
    """Hash a function and everything of the project that it uses, or with `version` only that."""
    if version is not None:
        return Code(f"v:{version}", {"version": (version, "")}, is_static=False)
    follower = Follower(skipped)
    follower.add(function)
    for used in uses:
        if isinstance(used, str):
            follower.package(used)
        else:
            follower.add(used)
    code = follower.code
    code.hash = digest({name: part[0] for name, part in code.parts.items()})
    return code


class Follower:
    """Collects the parts of a function in `code`: the hash and place of each, by name."""

    def __init__(self, skipped: Iterable[type]) -> None:
        self.code = Code()
        self._modules: dict[str, ast.Module | None] = {}
        self._skipped = tuple(skipped)

    def add(self, thing: object, label: str = "") -> None:
        """Follow a function, method, partial, class, module, or a value."""
        if isinstance(thing, functools.partial):
            self._runtime(f"{label or 'partial'}:arguments", (thing.args, thing.keywords))
            self.add(thing.func)
        elif inspect.ismethod(thing):
            self.add(thing.__func__)
            self._instance(thing.__self__)
        elif isinstance(thing, types.FunctionType):
            self._function(thing)
        elif isinstance(thing, type):
            self._class(thing)
        elif isinstance(thing, types.ModuleType):
            tree = self._syntax(thing.__file__) if thing.__file__ else None
            if tree is not None:
                self.code.parts[f"module {thing.__name__}"] = (_hash(written(tree)), f"{thing.__file__}:1")
        elif isinstance(thing, staticmethod | classmethod):
            self.add(thing.__func__)
        elif callable(thing) and not isinstance(thing, _BUILT_IN):
            wrapped = getattr(thing, "__wrapped__", None)  # functools.cache and its like
            if isinstance(wrapped, types.FunctionType):
                self.add(wrapped)
            else:
                self._instance(thing)

    def package(self, name: str) -> None:
        """Another package, by its version."""
        import importlib.metadata

        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = "not installed"
        self.code.parts[f"package {name}"] = (_hash(version), version)

    def _syntax(self, file: str) -> ast.Module | None:
        if file not in self._modules:
            self.code.files[file] = stamp_of(file)  # before it is read, so that a change meanwhile is noticed
            self._modules[file] = syntax.module_syntax(file)
        return self._modules[file]

    def _function(self, function: types.FunctionType) -> None:
        code = function.__code__
        name = f"{_module_name(function)}:{code.co_qualname}"
        if name.endswith("<lambda>"):
            name += f"@{code.co_firstlineno}"
        if name in self.code.parts or not is_project(function):
            return
        tree = self._syntax(code.co_filename)
        node = None if tree is None else syntax.find_definition(tree, code)
        where = f"{code.co_filename}:{code.co_firstlineno}"
        if node is None:
            constants = [repr(getattr(each, "co_code", each)) for each in code.co_consts]
            self.code.parts[name] = (_hash(repr((code.co_code, code.co_names, constants))), where)
            message = "its source is not there; its bytecode was hashed, which differs from one Python to another"
            self.code.unknown.setdefault(name, f"{where}: {message}")
            self.code.is_static = False
            return
        cells = inspect.getclosurevars(function).nonlocals if function.__closure__ else {}
        if not isinstance(node, ast.Lambda | ast.ClassDef) and node.decorator_list:
            kept = [each for each in node.decorator_list if not self._is_skipped(each, function.__globals__, cells)]
            node = type(node)(**{**{field: getattr(node, field) for field in node._fields}, "decorator_list": kept})
            ast.copy_location(node, node.body[0])
        self.code.parts[name] = (_hash(written(node)), where)
        self._used(node, name, {**function.__globals__, **cells}, cells, code.co_filename)
        if "__wrapped__" in function.__dict__:
            self.add(function.__wrapped__)  # type: ignore[attr-defined]

    def _is_skipped(self, decorator: ast.expr, around: Mapping[str, Any], cells: Mapping[str, Any]) -> bool:
        """`@blog.stage(...)` is not part of the code: its options are compared separately."""
        inner: ast.AST = decorator
        while isinstance(inner, ast.Call | ast.Attribute):
            inner = inner.func if isinstance(inner, ast.Call) else inner.value
        if not isinstance(inner, ast.Name):
            return False
        found = cells.get(inner.id, around.get(inner.id))
        if found is None and isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute):
            return decorator.func.attr == "stage"  # the variable of a function that has returned
        return isinstance(found, self._skipped)

    def _class(self, kind: type) -> None:
        name = f"{_module_name(kind)}:{kind.__qualname__}"
        if name in self.code.parts or not is_project(kind):
            return
        module = sys.modules.get(kind.__module__)
        file = getattr(module, "__file__", None)
        tree = self._syntax(file) if file else None
        node = None if tree is None else syntax.find_class(tree, kind.__qualname__)
        if node is None or module is None:
            self.code.parts[name] = (_hash(kind.__qualname__), "")
            self.code.unknown.setdefault(name, "its source was not found")
            for each in vars(kind).values():
                self.add(each)
            return
        self.code.parts[name] = (_hash(written(node)), f"{file}:{node.lineno}")
        self._used(node, name, vars(module), {}, file or "")

    def _used(self, node: ast.AST, name: str, around: Mapping[str, Any], cells: Mapping[str, Any], file: str) -> None:
        """Follow everything that a definition takes from outside it."""
        for used in sorted(syntax.global_names(node)):
            if used.startswith("__") and used.endswith("__") and used not in ("__file__", "__import__"):
                continue
            if used in _BLIND and used not in around:
                self.code.unknown.setdefault(f"{name}: {used}()", f"{file}:{getattr(node, 'lineno', 0)}")
            elif used in cells:
                self._value(f"{name}.{used}", cells[used])
            elif used in around:
                self._global(used, around, node, file, name)
        for inner in ast.walk(node):
            if isinstance(inner, ast.ImportFrom | ast.Import):
                self._import(inner, node, around.get("__package__"))

    def _global(self, used: str, around: Mapping[str, Any], node: ast.AST, file: str, name: str) -> None:
        value = around[used]
        if isinstance(value, self._skipped):
            return
        home = sys.modules.get(around.get("__name__", ""))
        if home is not None and vars(home).get(used) is value:
            self.code.seen.append((vars(home), used, value))
        if isinstance(value, types.ModuleType):
            for chain in syntax.attributes_of(node, used):
                self._attribute(value, chain, name)
        elif isinstance(value, types.FunctionType | type) or inspect.ismethod(value):
            if used not in _BLIND:
                self.add(value)
            if (
                is_project(value)
                and value.__module__ == around.get("__name__")
                and getattr(value, "__name__", used) != used
            ):
                self._assigned(used, value, around, file)  # another name for it, or made by a call
        elif not isinstance(value, types.BuiltinFunctionType):
            self._assigned(used, value, around, file)

    def _attribute(self, module: types.ModuleType, chain: tuple[str, ...], name: str) -> None:
        """Follow `helpers.text.clean` through the modules."""
        if module.__name__ == "importlib" and chain[0] == "import_module":
            self.code.unknown.setdefault(f"{name}: importlib.import_module", "")
        for part in chain:
            found = getattr(module, part, None)
            if not isinstance(found, types.ModuleType):
                if is_project_file(getattr(module, "__file__", None)):
                    holder = ast.Expr(ast.Name(part, ast.Load()))
                    self._global(part, {**vars(module), part: found}, holder, module.__file__ or "", name)
                return
            module = found

    def _import(self, node: ast.Import | ast.ImportFrom, inside: ast.AST, package: str | None) -> None:
        """Follow what an import inside a body takes from modules of the project."""
        names = [each.name for each in node.names]
        for name in names if isinstance(node, ast.Import) else ["." * node.level + (node.module or "")]:
            try:
                full = importlib.util.resolve_name(name, package)
                spec = importlib.util.find_spec(full)
                if spec is None or not is_project_file(spec.origin):
                    continue
                module = importlib.import_module(full)
            except (ImportError, ValueError):
                continue
            if isinstance(node, ast.Import):
                for chain in syntax.attributes_of(inside, name.partition(".")[0]):
                    self._attribute(sys.modules[name.partition(".")[0]], chain, full)
            else:
                for each in names:
                    self._attribute(module, (each,), full)

    def _assigned(self, name: str, value: object, around: Mapping[str, Any], file: str) -> None:
        """Follow a constant of a module: its source and what that uses; for a literal, its present value."""
        home = around.get("__name__", "")
        label = f"{importable_name(sys.modules[home]) if home == '__main__' else home}:{name}"
        if label in self.code.parts:
            return
        source = getattr(sys.modules.get(home), "__file__", None) or file
        tree = self._syntax(source)
        statements = [] if tree is None else syntax.assignments(tree, name)
        if not statements:
            self.code.parts[label] = ("", "")
            self._value(label, value, imported=True)
            return
        where = f"{source}:{statements[0].lineno}"
        text = "".join(map(written, statements))
        plain = plain_text(value)
        if plain is not None and len(statements) == 1 and _is_literal(statements[0]):
            text = plain
        elif len(statements) > 1:
            self.code.unknown.setdefault(label, f"{where}: it is assigned several times")
        elif call := _impure(statements[0]):
            self.code.unknown.setdefault(label, f"{where}: it is computed when the module is imported ({call})")
        self.code.parts[label] = (_hash(text), where)
        for statement in statements:
            self._used(statement, label, {key: each for key, each in around.items() if key != name}, {}, source)

    def _value(self, label: str, value: object, *, imported: bool = False) -> None:
        """Follow a value whose source is not known: from a closure, or another module."""
        if isinstance(value, self._skipped):
            return
        if isinstance(value, types.FunctionType | type | functools.partial) or inspect.ismethod(value):
            self.add(value, label)
        elif isinstance(value, types.ModuleType | types.BuiltinFunctionType):
            return
        elif (text := plain_text(value)) is not None:
            self.code.parts[label] = (_hash(text), "")
            self.code.is_static = False
        elif callable(value) and is_project(type(value)):
            self._instance(value)
        elif is_project(type(value)) or not imported:
            self.code.unknown.setdefault(label, f"a value of type {type(value).__name__}")

    def _runtime(self, label: str, value: object) -> None:
        text = plain_text(value)
        self.code.is_static = False
        if text is None:
            self.code.unknown.setdefault(label, "values that are not plain data")
        else:
            self.code.parts[label] = (_hash(text), "")

    def _instance(self, thing: object) -> None:
        kind = type(thing)
        self.add(kind)
        if is_project(kind):
            self._runtime(f"{_module_name(kind)}:{kind.__qualname__}()", getattr(thing, "__dict__", {}))


def is_project(thing: object) -> bool:
    """Whether a function or class belongs to the project: not to Python, an installed package or Stepwell."""
    code = getattr(thing, "__code__", None)
    module = sys.modules.get(str(getattr(thing, "__module__", "")))
    return is_project_file(getattr(module, "__file__", None) if code is None else code.co_filename)


def _module_name(thing: Callable[..., Any] | type) -> str:
    return module_of(thing) if thing.__module__ in sys.modules else str(thing.__module__)


def plain_text(value: object, depth: int = 0) -> str | None:
    """Return plain data as a text that is the same on every machine, or None for other values."""
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__}:{value!r}"
    if depth > 20:
        return None
    if isinstance(value, tuple | list | set | frozenset):
        inner = [plain_text(each, depth + 1) for each in value]
        if None in inner:
            return None
        ordered = sorted(map(str, inner)) if isinstance(value, set | frozenset) else inner
        return f"{type(value).__name__}[{','.join(map(str, ordered))}]"
    if isinstance(value, dict):
        pairs = [(plain_text(key, depth + 1), plain_text(each, depth + 1)) for key, each in value.items()]
        if any(None in pair for pair in pairs):
            return None
        return "dict{" + ",".join(f"{key}={each}" for key, each in sorted(pairs, key=str)) + "}"
    return None


def _is_literal(statement: ast.stmt) -> bool:
    """Whether a statement assigns a literal: it looks nothing up and calls nothing."""
    value = getattr(statement, "value", None)
    return value is not None and not any(
        isinstance(each, ast.Name | ast.Call | ast.Attribute | ast.Await) for each in ast.walk(value)
    )


def _impure(statement: ast.stmt) -> str | None:
    """Return a call that is not pure, or a name that depends on the machine, in an assignment of a module."""
    value = getattr(statement, "value", None) or statement
    for each in ast.walk(value):
        if isinstance(each, ast.Lambda | ast.FunctionDef):
            continue
        if isinstance(each, ast.Call):
            called = each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", "?")
            if called not in _PURE_CALLS:
                return f"{called}()"
        if isinstance(each, ast.Attribute) and each.attr in ("environ", "argv"):
            return each.attr
        if isinstance(each, ast.Name) and each.id == "__file__":
            return each.id
    return None


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
