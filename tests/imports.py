"""What Python files say of other files: their imports, and the modules that they start by a name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

import grimp

#: Packages, and where they are.
_PLACES = {"farm": PurePosixPath("farm"), "farm_workers": PurePosixPath("workers/farm_workers")}
#: The modules of the proof systems that a program meets by name only.
SYSTEMS = {
    name: tuple(f"{package}.systems.{folder}.record" for package in _PLACES)
    for name, folder in {"metamath": "metamath", "hol-light": "hol_light", "hol_light": "hol_light"}.items()
}
#: The modules that a word starts: the name of a command, of a group of commands, or of a proof system.
STARTS: Mapping[str, tuple[str, ...]] = {
    "submit": ("farm.cli.submitting",),
    "status": ("farm.cli.watching",),
    **dict.fromkeys(("show", "export"), ("farm.cli.show",)),
    **dict.fromkeys(("cancel", "rejudge"), ("farm.cli.revising",)),
    **dict.fromkeys(("prove", "search"), ("farm.cli.proving",)),
    "holes": ("farm.cli.filling",),
    **dict.fromkeys(("serve", "mcp"), ("farm.cli.serving",)),
    **dict.fromkeys(("down", "doctor"), ("farm.cli.operating",)),
    "db": ("farm.cli.operating", "farm.cli.roles"),
    "report": ("farm_workers.cli.reporting",),
    "prune": ("farm.cli.pruning",),
    "metrics": ("farm.cli.metrics",),
    "keys": ("farm.cli.keys",),
    **dict.fromkeys(("worker", "check"), ("farm_workers.cli.commands",)),
    "selftest": ("farm_workers.cli.selftest",),
    "mend": ("farm_workers.cli.mending",),
    "environments": ("farm_workers.cli.environments",),
    "audit": ("farm_workers.cli.audit",),
    "bench": ("farm_workers.bench.command",),
    "bundle": ("farm_workers.cli.bundling",),
    "dataset": ("farm_workers.cli.datasets",),
    "verify-repo": ("farm_workers.cli.claims",),
    "extract": ("farm_workers.cli.extracting",),
    **SYSTEMS,
}
#: Modules that import those above only to find them by such a word.
REGISTRIES = (
    *("farm.cli.command", "farm_workers.cli.commands", "farm.systems.known", "farm_workers.systems.known"),
)
#: What a module runs in another process, where none of its strings is the name of that module.
RUNS = {"farm.embedded.worker": "farm_workers.cli.commands", "farm.cli.doctor": "farm_workers.machine.doctor"}

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOCUMENTED = (ast.Module, ast.ClassDef, *_FUNCTIONS)
_MODULE = re.compile(r"\b(?:farm|farm_workers|tests)(?:\.\w+)+")
_STARTED = re.compile(r"(?:^|\bfarm )([a-z]+(?:[-_][a-z]+)*)(?= |$)")
_WORD = re.compile(r"[\w.-]+")


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a piece of Python says: imported names, modules in strings, other words, fixtures."""

    imports: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    started: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    fixtures: frozenset[str] = frozenset()

    @classmethod
    def of(cls, tree: ast.AST) -> Source:
        """Return what a syntax tree says, without its docstrings."""
        nodes = list(ast.walk(tree))
        documentation = {
            id(node.body[0].value)
            for node in nodes
            if isinstance(node, _DOCUMENTED) and node.body and isinstance(node.body[0], ast.Expr)
        }
        strings = [
            each.value
            for each in nodes
            if isinstance(each, ast.Constant)
            and isinstance(each.value, str)
            and id(each) not in documentation
        ]
        return cls(
            imports=frozenset(name for node in nodes for name in _imported(node)),
            modules=frozenset(name for each in strings for name in _MODULE.findall(each)),
            started=frozenset(word for each in strings for word in _STARTED.findall(each)),
            words=frozenset(word for each in strings for word in _WORD.findall(each)),
            fixtures=frozenset(_parameters(nodes)),
        )

    def __or__(self, other: Source) -> Source:
        """Return what both say."""
        return Source(
            imports=self.imports | other.imports,
            modules=self.modules | other.modules,
            started=self.started | other.started,
            words=self.words | other.words,
            fixtures=self.fixtures | other.fixtures,
        )


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and _called(node) == "reaches":
        yield from (f"{name}.*" for name in _strings(node))


def _parameters(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, _FUNCTIONS) and (node.name.startswith("test_") or node.decorator_list):
            yield from (each.arg for each in (*node.args.args, *node.args.kwonlyargs))
        elif isinstance(node, ast.Call) and _called(node) in ("usefixtures", "getfixturevalue"):
            yield from _strings(node)
        elif isinstance(node, ast.keyword) and node.arg == "autouse":
            yield node.arg


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _strings(node: ast.Call) -> list[str]:
    return [
        each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]


@cache
def source(path: Path) -> Source:
    """Return what a file says."""
    return Source.of(ast.parse(path.read_text(encoding="utf-8")))


@cache
def definitions(path: Path) -> dict[str, Source]:
    """Return what each definition of a file says, with the definitions that it uses."""
    said: dict[str, Source] = {}
    used: dict[str, set[str]] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias, module in zip(node.names, _imported(node), strict=True):
                said[alias.asname or alias.name.partition(".")[0]] = Source(imports=frozenset({module}))
            continue
        inside = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
        stored = [each.id for each in inside if isinstance(each.ctx, ast.Store)]
        for name in [node.name] if isinstance(node, _DOCUMENTED[1:]) else stored:
            said[name] = Source.of(node)
            used[name] = {each.id for each in inside}
    return {name: _joined(said[each] for each in closed({name}, used) if each in said) for name in used}


def _joined(pieces: Iterable[Source]) -> Source:
    found = Source()
    for piece in pieces:
        found |= piece
    return found


def closed(start: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the names that some names lead to, and these."""
    found: set[str] = set()
    waiting = list(start)
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += edges.get(name, ())
    return found


class Product:
    """The modules of the product, and those that each one needs."""

    def __init__(self, root: Path) -> None:
        self.folders = tuple(map(str, _PLACES.values()))
        self._graph = grimp.build_graph(*_PLACES, cache_dir=None)
        self._root = root
        self.modules = frozenset(self._graph.modules)
        self.needs = {module: self._needed(module) for module in self.modules}

    def file(self, module: str) -> Path:
        """Return the file of a module."""
        package, *parts = module.split(".")
        path = self._root.joinpath(_PLACES[package], *parts)
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    def below(self, package: str) -> set[str]:
        """Return a module and those of the package that it is."""
        return {each for each in self.modules if f"{each}.".startswith(f"{package}.")}

    def changed_with(self, path: str) -> set[str]:
        """Return the modules that the change of a file can reach; none where that may be all."""
        place = PurePosixPath(path)
        package, folder = next(each for each in _PLACES.items() if place.is_relative_to(each[1]))
        name = ".".join((package, *place.with_suffix("").relative_to(folder).parts))
        if place.suffix != ".py" or place.name == "__init__.py":
            # What is no module belongs to the package that it lies in.
            name = name.rpartition(".")[0]
            while name not in self.modules:
                name = name.rpartition(".")[0]
        return self.below(name) if name in self.modules - {package} else set()

    def started_by(self, said: Source) -> set[str]:
        """Return the modules that a piece of Python imports, or starts by a name."""
        found = {module for name in said.imports if (module := self._module(name))}
        found |= {module for name in said.modules if (module := self._module(name))} - _PLACES.keys()
        found |= {f"{each}.__main__" for each in found} & self.modules
        marked = {each for name in said.imports if name.endswith(".*") for each in self.below(name[:-2])}
        # Words are names of commands only where something runs `farm`.
        runs = "farm" in said.words or "farm.cli.command.main" in said.imports
        words = said.started if runs else said.started & SYSTEMS.keys()
        return found.union(marked, *(STARTS[word] for word in words & STARTS.keys()))

    def _module(self, name: str) -> str | None:
        return next((each for each in (name, name.rpartition(".")[0]) if each in self.modules), None)

    def _needed(self, module: str) -> set[str]:
        found = set(self._graph.find_modules_directly_imported_by(module))
        if module in REGISTRIES:
            found -= {each for modules in STARTS.values() for each in modules}
        # A string that names a module, for ``python -m``.
        named = source(self.file(module)).modules & self.modules
        named |= {f"{each}.__main__" for each in named} & self.modules
        return found | named | ({RUNS[module]} if module in RUNS else set())
