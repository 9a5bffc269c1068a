"""The command `farm audit --library`: compares the axioms and sorries of a library with a baseline."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from farm.errors import FarmError, UsageError
from farm.files import write_whole
from farm_workers.audit.audit import STANDARD_AXIOMS
from farm_workers.audit.dependencies import Contents
from farm_workers.audit.library import modules_below, read
from farm_workers.audit.listing import is_readable
from farm_workers.audit.names import dotted
from farm_workers.audit.olean import Name

#: The version of the baseline's format, which stands in the file.
_FORMAT = 1
STANDARD = tuple(sorted(map(dotted, STANDARD_AXIOMS)))
#: The most modules or declarations that a message names.
_MOST_NAMED = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Rests:
    """The axioms and the declarations with a sorry that a declaration rests on, itself included."""

    axioms: tuple[str, ...] = ()
    sorries: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The axioms and sorries in words."""
        told = [("axioms", self.axioms), ("sorries", self.sorries)]
        return "; ".join(f"{what}: {', '.join(names)}" for what, names in told if names) or "nothing"


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A declaration with other axioms or sorries than in the baseline, which has `was`."""

    name: str
    module: str
    rests: Rests
    was: Rests


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The differences between a library and a baseline; `gone` are declarations of the baseline alone."""

    declarations: int
    differences: tuple[Difference, ...]
    gone: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class LibraryAsked:
    """The folders of a library's modules, and the modules to report.

    Without `modules` these are all in the folders `own`. Axioms that are `allowed` are left out.
    """

    roots: Sequence[Path]
    own: Sequence[Path]
    modules: Sequence[str] = ()
    allowed: Collection[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Library:
    """The axioms and sorries of declarations, by name; declarations without any are only counted."""

    declarations: int
    modules: Mapping[str, str]
    rests: Mapping[str, Rests]

    @classmethod
    def of(cls, asked: LibraryAsked) -> Library:
        """Read the compiled modules of a library as data.

        Raises UsageError if there is no such module, and FarmError if one of those that matter is unreadable.
        """
        contents = read(asked.roots)
        wanted = _wanted(contents, asked)
        found, homes, count = dict[str, Rests](), dict[str, str](), 0
        for name, module, number in _constants(contents, wanted):
            below, count = contents.sets[number], count + 1
            if below.unknown:
                raise FarmError(_unknown(contents, name, min(map(dotted, below.unknown))))
            axioms = tuple(sorted(set(map(dotted, below.axioms)) - set(asked.allowed)))
            rests = Rests(axioms=axioms, sorries=tuple(sorted(map(dotted, below.sorries))))
            if rests != Rests() and (_is_written(name) or name in below.axioms | below.sorries):
                found[dotted(name)] = rests
                homes[dotted(name)] = dotted(contents.modules[module])
        return cls(declarations=count, modules=homes, rests=found)

    def compared(self, baseline: Mapping[str, Rests]) -> Comparison:
        """Return the differences from a baseline, in the order of modules and names."""
        nothing = Rests()
        differing = [
            Difference(name=name, module=self.modules[name], rests=rests, was=baseline.get(name, nothing))
            for name, rests in self.rests.items()
            if rests != baseline.get(name, nothing)
        ]
        return Comparison(
            declarations=self.declarations,
            differences=tuple(sorted(differing, key=lambda each: (each.module, each.name))),
            gone=tuple(sorted(baseline.keys() - self.rests.keys())),
        )


def known(file: Path) -> dict[str, Rests]:
    """Return the declarations of a baseline. Raises UsageError if the file is missing, or is no baseline."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        is_known = content["farm_library_baseline"] == _FORMAT
        found = {
            str(name): Rests(axioms=tuple(each["axioms"]), sorries=tuple(each["sorries"]))
            for each in content["sets"]
            for name in each["declarations"]
        }
    except FileNotFoundError as error:
        raise UsageError(f"{file}: no such file; write it with --write-baseline") from error
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UsageError(f"{file} is no baseline ({error}); write it again with --write-baseline") from error
    if not is_known:
        raise UsageError(f"{file} is of another version of the farm; write it again with --write-baseline")
    return found


def write(library: Library, file: Path) -> None:
    """Write the baseline of a library: its declarations by their axioms and sorries, a name on each line.

    Raises UsageError if the file cannot be written.
    """
    groups: dict[Rests, list[str]] = {}
    for name, rests in sorted(library.rests.items()):
        groups.setdefault(rests, []).append(name)
    sets = [asdict(rests) | {"declarations": names} for rests, names in sorted(groups.items(), key=_order)]
    text = json.dumps({"farm_library_baseline": _FORMAT, "sets": sets}, indent=1, ensure_ascii=False)
    try:
        write_whole(file, f"{text}\n".encode())
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}; name a file that can be written") from error


def _order(group: tuple[Rests, list[str]]) -> tuple[Sequence[str], Sequence[str]]:
    return group[0].axioms, group[0].sorries


def _wanted(contents: Contents, asked: LibraryAsked) -> set[int]:
    """Return the numbers of the modules to report on. Raises UsageError and FarmError."""
    named = [*map(dotted, contents.modules), *contents.unread]
    for module in asked.modules:
        if not any(_is_below(name, [module]) for name in named):
            raise UsageError(f"no compiled module is called {module}, or has a name below that")
    if asked.modules:
        wanted = {name for name in named if _is_below(name, asked.modules)}
    else:
        wanted = {dotted(name) for folder in asked.own for name, _ in modules_below(folder)}
    if not wanted:
        raise UsageError(f"{', '.join(map(str, asked.own))}: no compiled modules; build them, or name others")
    for name in sorted(wanted & contents.unread.keys()):
        raise FarmError(
            f"{name} cannot be read: {contents.unread[name]}; build it again, with the Lean of the others"
        )
    return {number for number, name in enumerate(contents.modules) if dotted(name) in wanted}


def _is_below(name: str, modules: Sequence[str]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in modules)


def _unknown(contents: Contents, name: Name, missing: str) -> str:
    said = [f"{module}: {reason}" for module, reason in list(contents.unread.items())[:_MOST_NAMED]]
    cause = f" ({'; '.join(said)})" if said else ""
    return (
        f"{dotted(name)} rests on {missing}, which no readable module declares{cause}; name all folders with "
        "modules, Lean's own among them, or build them again"
    )


def _constants(contents: Contents, wanted: Collection[int]) -> Iterator[tuple[Name, int, int]]:
    """Yield the constants of modules, each with the numbers of its module and of its set."""
    for name, number in contents.constants.items():
        if contents.homes[name] in wanted:
            yield name, contents.homes[name], number
    for name, homes in contents.repeated.items():
        yield from ((name, module, number) for module, number in homes.items() if module in wanted)


def _is_written(name: Name) -> bool:
    """Return whether a person has written a declaration, as far as its name shows."""
    if name[:1] == ("_private",) and 0 in name:
        name = name[name.index(0) + 1 :]
    return is_readable(name)
