"""Environment step, HOL Light: turns a table of kind ``hol-light`` into an environment, as a value.

It follows Debian's packages hol-light (20230128) and ocaml-base (4.13.1): the toplevel is bytecode,
``hol.ml`` is its script, and ``libcamlrun_shared.so`` can run it. Each loaded file of a library can change
the meaning of a name or a proof, so the digest covers all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from farm.errors import SettingsError
from farm.judging.tiers import Tier
from farm.kinds import Kind
from farm_workers.environments import digest

#: Where Debian has the system, and OCaml's libraries.
FOLDER, OCAML = Path("/usr/share/hol-light"), Path("/usr/lib/ocaml")
#: Loaded behind the library, see `farm_workers.systems.hol_light`.
JUDGE = Path(__file__).resolve().parent / "judge.ml"
_KEYS = ("folder", "load")
_DIGEST_VERSION = "hol-light 1"
_RUNTIME = "libcamlrun_shared.so"
#: The files that a start needs besides the folder, with Debian's package of each: hol-light does not depend
#: on all.
_NEEDED = {_RUNTIME: "ocaml-base", "nums.cma": "libnum-ocaml-dev", "camlp5/camlp5o.cma": "camlp5"}
_LOADS = re.compile(r'\b(?:loads|loadt|needs|load_on_path\s+\S+|#\s*use)\s*"([^"\n]+)"')
_VERSION = re.compile(r'hol_version\s*=\s*"([^"]*)"')
_PLAIN = re.compile(r"[\w./+-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class HolLightEnvironment:
    """One HOL Light: the folder that it is in, OCaml's libraries, and the files loaded behind ``hol.ml``.

    `digest` covers every file that is loaded, the toplevel, its runtime, and the farm's own judge.
    """

    name: str
    digest: str
    toolchain: str
    folder: Path
    ocaml: Path
    load: tuple[str, ...] = ()

    def __hash__(self) -> int:
        """Return a hash that takes no time."""
        return hash(self.digest)

    @property
    def kind(self) -> Kind:
        """The proof system."""
        return Kind.HOL_LIGHT

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers that can be had: a theorem is made by HOL Light's kernel, or not at all."""
        return (Tier.KERNEL,)

    @property
    def second(self) -> None:
        """No second checker exists."""
        return

    @property
    def runtime(self) -> Path:
        """OCaml's runtime as a shared library."""
        return self.ocaml / _RUNTIME

    @property
    def script(self) -> str:
        """The toplevel's script: load everything, then call `farm_end`."""
        loads = (f'loadt "{file}";;' for file in self.load)
        lines = (
            f'#use "{self.folder / "hol.ml"}";;',
            *loads,
            f'#use "{JUDGE}";;',
            'Callback.register "farm_end" 0;;',
        )
        return "".join(f"{line}\n" for line in lines)


def environment(name: str, table: object, _home: Path) -> HolLightEnvironment:
    """Return the environment of a table. Raises SettingsError that names the key and the remedy."""
    folder, load = _read(table)
    _require_installed(folder, OCAML)
    files = dict(sorted(_loaded(folder, ["hol.ml", *load])))
    programs = [folder / "ocaml", folder / "pa_j.cmo", *(OCAML / each for each in _NEEDED), JUDGE]
    contents = [*files.values(), *(each.read_bytes() for each in programs)]
    version = _VERSION.search((folder / "hol.ml").read_text(encoding="utf-8", errors="replace"))
    return HolLightEnvironment(
        name=name,
        digest=digest.sha256([_DIGEST_VERSION, *load, *files, *contents]),
        toolchain=f"HOL Light {version[1] if version else '(no version)'} on OCaml 4.13",
        folder=folder,
        ocaml=OCAML,
        load=load,
    )


def _read(table: object) -> tuple[Path, tuple[str, ...]]:
    if not isinstance(table, dict):
        raise SettingsError("must be a table")
    if unknown := sorted(set(table) - set(_KEYS)):
        raise SettingsError(
            f"unknown key {unknown[0]!r}; a table of kind hol-light has: kind, {', '.join(_KEYS)}"
        )
    folder, load = table.get("folder", str(FOLDER)), table.get("load", [])
    if not isinstance(folder, str) or not Path(folder).is_absolute() or not _PLAIN.fullmatch(folder):
        raise SettingsError('folder: must be an absolute path, such as "/usr/share/hol-light"')
    if not isinstance(load, list) or not all(
        isinstance(each, str) and _PLAIN.fullmatch(each) for each in load
    ):
        raise SettingsError('load: must be a list of files in the folder, such as ["Library/transc.ml"]')
    return Path(folder), tuple(load)


def _require_installed(folder: Path, ocaml: Path) -> None:
    if missing := [each for each in ("ocaml", "pa_j.cmo", "hol.ml") if not (folder / each).is_file()]:
        raise SettingsError(
            f"folder: there is no {folder / missing[0]}; install HOL Light "
            "(sudo apt-get install hol-light libnum-ocaml-dev), or name its folder"
        )
    for file, package in _NEEDED.items():
        if not (ocaml / file).is_file():
            raise SettingsError(f"HOL Light needs {ocaml / file}; install it: sudo apt-get install {package}")


def _loaded(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield each file that is loaded, by its name in the folder, with its content. Raises SettingsError."""
    left, seen = list(names), set[str]()
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            if name in names:
                raise SettingsError(f"load: {folder / name} cannot be read: {error.strerror}") from error
            continue  # a comment can name any file; one that is needed and missing stops the image
        yield name, content
        left += _LOADS.findall(content.decode(errors="replace"))
