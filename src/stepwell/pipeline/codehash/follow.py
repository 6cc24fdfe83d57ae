"""Following what a function uses: the functions, classes and constants of the project, as far as they can be found."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import linecache
import os
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

from ...base.importable import MAIN, importable_name, module_of
from ...base.words import shown
from ...errors import DefinitionError
from ..states.single import stamp_of
from . import syntax
from .code import HashedCode, digest
from .contents import attributes_of, cells, defaults_of, items_of, parts_of, plain_text, project_code_in
from .loaded import is_project_file, package_folder
from .syntax import written

_ARGUMENTS = ":arguments"
_BUILT_IN: tuple[type, ...] = (types.BuiltinFunctionType, types.MethodWrapperType)
_BLIND = {"getattr", "globals", "eval", "exec", "__import__", "import_module", "vars", "locals"}


def code_of(
    function: Any, *, version: str | None = None, uses: Iterable[Any] = (), skipped: Iterable[type] = (), home: str = ""
) -> HashedCode:
    """Hash a function and everything of the project that it uses, or with `version` only that.

    `home` is the file in which the function was made a stage: its package belongs to the project, also where it is installed.
    DefinitionError if there is no code to hash: states without a code hash would never become stale.
    """
    if version is not None:
        return HashedCode(f"v:{version}", {"version": (version, "")}, is_static=False)
    follower = CodeCollector(skipped, home)
    follower.add(function)
    if not follower.has_code:
        follower.installed(function)
    for used in uses:
        if isinstance(used, str):
            follower.package(used)
        else:
            follower.add(used)
    code = follower.code
    if not follower.has_code:
        raise DefinitionError(
            f"the code of {shown(function)} was not found in this project, so a change of it would not be noticed; "
            'make a function of the project the stage that calls it, or give version="1"'
        )
    code.hash = digest({name: part[0] for name, part in code.parts.items()})
    return code


class CodeCollector:
    """Collects the parts of a function in `code`: the hash and place of each, by name."""

    def __init__(self, skipped: Iterable[type], home: str = "") -> None:
        self.code = HashedCode()
        self._modules: dict[str, ast.Module | None] = {}
        self._skipped = tuple(skipped)
        self._package = package_folder(home)
        self._followed: dict[object, object] = {}
        """Everything that was followed, so that nothing is followed twice and no id is used again."""
        self._labels: Counter[str] = Counter()
        self._decorated: set[int] = set()
        """The functions whose decorators are in their own parts."""

    def add(self, thing: Any, label: str = "") -> None:
        """Follow a function, method, partial, class, module, or another object that can be called."""
        if isinstance(thing, functools.partial):
            if self._is_new(id(thing), thing):
                self._arguments(self._label(f"{label or 'partial'}{_ARGUMENTS}"), (thing.args, thing.keywords))
                self.add(thing.func)
        elif inspect.ismethod(thing):
            self.add(thing.__func__)
            if isinstance(thing.__self__, type):
                self.add(thing.__self__)
            else:
                self._instance(thing.__self__)
        elif isinstance(thing, types.FunctionType):
            self._function(thing)
        elif isinstance(thing, type):
            self._class(thing)
        elif isinstance(thing, types.ModuleType):
            tree = self._syntax(thing.__file__) if thing.__file__ else None
            if tree is not None:
                self.code.parts[f"module {thing.__name__}"] = (_hash(written(tree)), f"{thing.__file__}:1")
        elif isinstance(thing, (*self._skipped, *_BUILT_IN)):
            return
        elif self._is_project(type(thing)):
            self._instance(thing)
        else:
            self._library_object(thing)

    @property
    def has_code(self) -> bool:
        return any(not name.endswith(_ARGUMENTS) for name in self.code.parts)

    def installed(self, thing: Any) -> None:
        """Count a function of Python by its name, one of an installed package also by the version of the package."""
        import importlib.metadata

        while isinstance(thing, functools.partial):
            thing = thing.func
        module, name = str(getattr(thing, "__module__", None)), str(getattr(thing, "__qualname__", ""))
        found: object = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        top = module.partition(".")[0]
        packages = importlib.metadata.packages_distributions().get(top, []) if found is thing else []
        for each in packages:
            self.package(each)
        if packages or (found is thing and top in sys.stdlib_module_names):
            self.code.parts[f"{module}:{name}"] = ("", "")
            self.code.is_static = False

    def _is_new(self, key: object, thing: object) -> bool:
        if key in self._followed:
            return False
        self._followed[key] = thing
        return True

    def _label(self, name: str) -> str:
        """Return a name for a part. Further parts of one name, as the wrappers of one decorator have, are numbered."""
        label = name
        while label in self.code.parts:
            self._labels[name] += 1
            label = f"{name}#{self._labels[name] + 1}"
        return label

    def _is_project(self, thing: object) -> bool:
        """Whether a function or class belongs to the project: not to Python, another installed package or Stepwell."""
        code = getattr(thing, "__code__", None)
        file: str | None = getattr(sys.modules.get(str(getattr(thing, "__module__", ""))), "__file__", None)
        if isinstance(code, types.CodeType):
            is_generated = code.co_filename.startswith("<") and file and not linecache.getlines(code.co_filename)
            file = None if is_generated else code.co_filename
        return self._is_project_file(file)

    def _is_project_file(self, file: str | None) -> bool:
        return is_project_file(file) or bool(self._package and file and os.path.abspath(file).startswith(self._package))

    def _library_object(self, thing: Any) -> None:
        """Follow the code of the project that an object of a library holds, such as what a decorator returned."""
        if not self._is_new(id(thing), thing):
            return
        code = project_code_in(thing, self._is_project)
        for each in code:
            if not isinstance(each, self._skipped):
                self.add(each)
        if any(id(each) not in self._decorated for each in code if isinstance(each, types.FunctionType)):
            name = getattr(thing, "__qualname__", type(thing).__qualname__)
            message = "an object of a library, whose arguments are not written as a decorator"
            self.code.unknown.setdefault(f"{getattr(thing, '__module__', '')}:{name}", message)

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
        if not self._is_project(function):
            self._library_object(function)
            return
        code, around = function.__code__, cells(function)
        defaults = defaults_of(function)
        is_inner = "<locals>" in code.co_qualname
        runtime = {name: each for name, each in defaults.items() if is_inner or plain_text(each) is None}
        # Functions of one code differ in what they hold: the wrappers that one decorator made.
        if not self._is_new(id(function) if around or runtime else code, function):
            return
        label = self._label(f"{_module_name(function)}:{code.co_qualname}")
        tree = self._syntax(code.co_filename)
        node = None if tree is None else syntax.find_definition(tree, code)
        where = f"{code.co_filename}:{code.co_firstlineno}"
        wrapped = function.__dict__.get("__wrapped__")
        if node is None:
            self.code.parts[label] = (_hash(syntax.bytecode_text(code)), where)
            message = "its source is not there; its bytecode was hashed, which differs from one Python to another"
            self.code.unknown.setdefault(label, f"{where}: {message}")
            self.code.is_static = False
            self._names(syntax.global_names_of(code), code, label, {**function.__globals__, **around}, around, where)
        else:
            if not isinstance(node, ast.Lambda | ast.ClassDef) and node.decorator_list:
                kept = [
                    each for each in node.decorator_list if not self._is_skipped(each, function.__globals__, around)
                ]
                node = type(node)(**{**{field: getattr(node, field) for field in node._fields}, "decorator_list": kept})
                ast.copy_location(node, node.body[0])
                if kept:
                    self._decorated.add(id(function))
            self.code.parts[label] = (_hash(written(node)), where)
            self._used(node, label, {**function.__globals__, **around}, around, code.co_filename)
        for name, value in around.items():
            self._value(f"{label}.{name}", value, is_wrapped=value is wrapped)
        for name, value in runtime.items():
            self._value(f"{label}.{name}", value)
        if wrapped is not None:
            self.add(wrapped)

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
        if not self._is_project(kind) or not self._is_new(id(kind), kind):
            return
        label = self._label(f"{_module_name(kind)}:{kind.__qualname__}")
        module = sys.modules.get(kind.__module__)
        file = getattr(module, "__file__", None)
        tree = self._syntax(file) if file else None
        node = None if tree is None else syntax.find_class(tree, kind.__qualname__)
        is_found = node is not None and module is not None
        if node is None or module is None:
            self.code.parts[label] = (_hash(kind.__qualname__), "")
            self.code.unknown.setdefault(label, "its source was not found")
        else:
            self.code.parts[label] = (_hash(written(node)), f"{file}:{node.lineno}")
            self._used(node, label, vars(module), {}, file or "")
        for base in kind.__bases__:
            self.add(base)
        for name, member in vars(kind).items():
            for function in parts_of(member) or () if not isinstance(member, types.FunctionType) else (member,):
                if not (is_found and _is_method(function, kind, name, file)):
                    self._member(function)

    def _member(self, function: object) -> None:
        """Follow what was put into a class from outside its body, and methods that hold variables of functions around it."""
        if isinstance(function, types.FunctionType | type) or (callable(function) and self._is_project(type(function))):
            self.add(function)

    def _used(self, node: ast.AST, label: str, around: Mapping[str, Any], cells: Mapping[str, Any], file: str) -> None:
        """Follow everything that a definition takes from outside it."""
        where = f"{file}:{getattr(node, 'lineno', 0)}"
        self._names(syntax.global_names(node), node, label, around, cells, where)
        for inner in ast.walk(node):
            if isinstance(inner, ast.ImportFrom | ast.Import):
                self._import(inner, node, around.get("__package__"))

    def _names(
        self,
        names: Iterable[str],
        node: ast.AST | types.CodeType,
        label: str,
        around: Mapping[str, Any],
        cells: Mapping[str, Any],
        where: str,
    ) -> None:
        for used in sorted(names):
            if used.startswith("__") and used.endswith("__") and used not in ("__file__", "__import__"):
                continue
            if used in _BLIND and used not in around:
                self.code.unknown.setdefault(f"{label}: {used}()", where)
            elif used in around and used not in cells:
                self._global(used, around, node, where.rpartition(":")[0], label)

    def _global(
        self, used: str, around: Mapping[str, Any], node: ast.AST | types.CodeType, file: str, label: str
    ) -> None:
        value = around[used]
        if isinstance(value, self._skipped):
            return
        home = sys.modules.get(around.get("__name__", ""))
        if home is not None and vars(home).get(used) is value:
            self.code.seen.append((vars(home), used, value))
        if isinstance(value, types.ModuleType):
            if not self._is_project_file(getattr(value, "__file__", None)):
                self._imported(used, around, file)
            for chain in syntax.attributes_of(node, used) if isinstance(node, ast.AST) else ():
                self._attribute(value, chain, label)
        elif used in _BLIND:
            return
        elif isinstance(value, types.FunctionType | type) or inspect.ismethod(value):
            self.add(value)
            if not self._is_project(value):
                self._imported(used, around, file)
            self._assigned(used, value, around, file, is_followed=True)  # another name for it, or made by a call
        elif isinstance(value, types.BuiltinFunctionType):
            self._imported(used, around, file)
        else:
            self._assigned(used, value, around, file)
        self._decorated_definition(used, around, file)

    def _decorated_definition(self, name: str, around: Mapping[str, Any], file: str) -> None:
        """Follow a definition that its decorator put where nothing leads to it, such as a registry of a library."""
        label, source = self._in_module(name, around, file)
        tree = self._syntax(source)
        node = None if tree is None else syntax.find_named(tree, name)
        if node is None or not node.decorator_list:
            return
        places = {f"{source}:{line}" for line in (node.lineno, *(each.lineno for each in node.decorator_list))}
        if places.isdisjoint(where for _, where in self.code.parts.values()):
            self.code.parts[f"{label} decorated"] = (_hash(written(node)), f"{source}:{node.lineno}")
            self._used(node, label, {key: each for key, each in around.items() if key != name}, {}, source)

    def _attribute(self, module: types.ModuleType, chain: tuple[str, ...], label: str) -> None:
        """Follow `helpers.text.clean` through the modules."""
        if module.__name__ == "importlib" and chain[0] == "import_module":
            self.code.unknown.setdefault(f"{label}: importlib.import_module", "")
        for part in chain:
            value = getattr(module, part, None)
            if not isinstance(value, types.ModuleType):
                if self._is_project_file(getattr(module, "__file__", None)):
                    holder = ast.Expr(ast.Name(part, ast.Load()))
                    self._global(part, {**vars(module), part: value}, holder, module.__file__ or "", label)
                return
            module = value

    def _import(self, node: ast.Import | ast.ImportFrom, inside: ast.AST, package: str | None) -> None:
        """Follow what an import inside a body takes from modules of the project."""
        names = [each.name for each in node.names]
        for name in names if isinstance(node, ast.Import) else ["." * node.level + (node.module or "")]:
            try:
                full = importlib.util.resolve_name(name, package)
                spec = importlib.util.find_spec(full)
                if spec is None or not self._is_project_file(spec.origin):
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

    def _imported(self, name: str, around: Mapping[str, Any], file: str) -> None:
        """Note what a module imports from a library under a name that alone does not say it: `from json import loads`."""
        label, source = self._in_module(name, around, file)
        tree = self._syntax(source)
        if label not in self.code.parts and tree is not None and (text := syntax.imports(tree, name)):
            self.code.parts[label] = (_hash(text), source)

    def _in_module(self, name: str, around: Mapping[str, Any], file: str) -> tuple[str, str]:
        """Return the label of a name in a module, and the file of the module."""
        home = str(around.get("__name__", ""))
        module = sys.modules.get(home)
        label = importable_name(module) if module is not None and home in MAIN else home
        return f"{label}:{name}", getattr(module, "__file__", None) or file

    def _assigned(
        self, name: str, value: object, around: Mapping[str, Any], file: str, *, is_followed: bool = False
    ) -> None:
        """Follow a constant of a module: its source and what that uses; for a literal, its present value."""
        label, source = self._in_module(name, around, file)
        label += " =" if is_followed else ""
        if label in self.code.parts:
            return
        tree = self._syntax(source)
        statements = [] if tree is None else syntax.assignments(tree, name)
        if not statements:
            if not is_followed:
                self.code.parts[label] = ("", "")
                self._imported(name, around, file)
                self._value(label, value, imported=True)
            return
        where = f"{source}:{statements[0].lineno}"
        text = "".join(map(written, statements))
        plain = plain_text(value)
        if plain is not None and len(statements) == 1 and syntax.is_literal(statements[0]):
            text = plain
        elif len(statements) > 1:
            self.code.unknown.setdefault(label, f"{where}: it is assigned several times")
        elif call := syntax.impure_call(statements[0]):
            self.code.unknown.setdefault(label, f"{where}: it is computed when the module is imported ({call})")
        self.code.parts[label] = (_hash(text), where)
        for statement in statements:
            self._used(statement, label, {key: each for key, each in around.items() if key != name}, {}, source)
        if plain is None and not is_followed:
            self._held(value)

    def _held(self, value: Any) -> None:
        """Follow the code that a value holds at run time, whichever statement put it there: a decorator that registers."""
        is_instance = self._is_project(type(value))
        for each in project_code_in(getattr(value, "__dict__", {}) if is_instance else value, self._is_project):
            if isinstance(each, types.FunctionType | type) and self._is_new(("held", id(each)), each):
                self.code.is_static = self.code.is_static and id(each) in self._followed
                self.add(each)

    def _value(self, label: str, value: object, *, imported: bool = False, is_wrapped: bool = False) -> None:
        """Follow a value whose source is not known: from a closure, or another module."""
        if isinstance(value, (*self._skipped, types.ModuleType, types.BuiltinFunctionType)):
            return
        if not is_wrapped:  # which function is there, no file says that is known here
            self.code.is_static = False
        if isinstance(value, types.FunctionType | type | functools.partial) or inspect.ismethod(value):
            self.add(value, label)
        elif (text := plain_text(value)) is not None:
            self.code.parts[label] = (_hash(text), "")
        elif isinstance(value, dict | list | tuple | set | frozenset):
            if self._is_new(id(value), value):
                for key, each in items_of(value):
                    self._value(f"{label}[{key}]", each)
        elif callable(value) and self._is_project(type(value)):
            self._instance(value)
        elif callable(value):
            self.add(value)
        else:
            if self._is_project(type(value)):
                self.add(type(value))
                self._held(value)
            if self._is_project(type(value)) or not imported:
                self.code.unknown.setdefault(label, f"a value of type {type(value).__name__}")

    def _arguments(self, label: str, values: tuple[tuple[object, ...], Mapping[str, object]]) -> None:
        text = plain_text(values)
        self.code.is_static = False
        if text is not None:
            self.code.parts[label] = (_hash(text), "")
            return
        for key, each in [*enumerate(values[0]), *values[1].items()]:
            self._value(f"{label}[{key}]", each)

    def _instance(self, thing: object) -> None:
        """Follow an object of the project that is called: its class, and its attributes."""
        if not self._is_new(id(thing), thing):
            return
        kind = type(thing)
        self.add(kind)
        if self._is_project(kind):
            label = self._label(f"{_module_name(kind)}:{kind.__qualname__}()")
            attributes = {name: each for name, each in attributes_of(thing).items() if name[:2] != "__"}
            text = plain_text(attributes)
            self.code.is_static = False
            if text is not None:
                self.code.parts[label] = (_hash(text), "")
            else:
                for name, each in attributes.items():
                    self._value(f"{label}.{name}", each)
        if callable(wrapped := getattr(thing, "__wrapped__", None)):
            self.add(wrapped)


def _is_method(function: object, kind: type, name: str, file: str | None) -> bool:
    """Whether a member is written in the body of its class, or generated from it, so that the source of the class says all."""
    if not isinstance(function, types.FunctionType):
        return False
    code = function.__code__
    if code.co_filename.startswith("<"):
        return file is not None
    is_written_there = code.co_qualname == f"{kind.__qualname__}.{name}" and code.co_filename == file
    return is_written_there and not set(code.co_freevars) - {"__class__"}


def _module_name(thing: Callable[..., Any] | type) -> str:
    return module_of(thing) if thing.__module__ in sys.modules else str(thing.__module__)


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
