"""Tables of HOL Light: what is wrong with one, and which files decide the digest."""

from __future__ import annotations

from pathlib import Path

import pytest
from farm_workers.systems.hol_light import environment as hol_light
from farm_workers.systems.hol_light.environment import environment
from farm_workers.systems.hol_light.ocaml import MAGIC, OCamlError, primitives

from farm.errors import SettingsError
from farm.judging.tiers import Tier

NOWHERE = Path("/nowhere")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like that of an installation, with files of ours, and OCaml's libraries beside it."""
    found, ocaml = tmp_path / "hol", tmp_path / "ocaml"
    (found / "Library").mkdir(parents=True)
    (ocaml / "camlp5").mkdir(parents=True)
    for name in ("libcamlrun_shared.so", "nums.cma", "camlp5/camlp5o.cma"):
        (ocaml / name).write_text(name)
    for name, text in {
        "ocaml": "bytecode",
        "pa_j.cmo": "syntax",
        "hol.ml": 'let hol_version = "9";;\nloads "lib.ml";;\n',
        "lib.ml": "let x = 1;;",
        "other.ml": "let y = 1;;",
        "Library/a.ml": 'needs "Library/b.ml";;',
        "Library/b.ml": "let b = 1;;",
    }.items():
        (found / name).write_text(text)
    monkeypatch.setattr(hol_light, "OCAML", ocaml)
    return found


def digest(folder: Path, *load: str) -> str:
    """Return the digest of an environment in this folder."""
    return environment("e", {"folder": str(folder), "load": list(load)}, NOWHERE).digest


def test_a_table_says_what_is_loaded(folder: Path) -> None:
    found = environment("e", {"folder": str(folder), "load": ["Library/a.ml"]}, NOWHERE)
    assert (found.name, found.toolchain) == ("e", "HOL Light 9 on OCaml 4.13")
    assert list(found.tiers) == [Tier.KERNEL]
    lines = found.script.splitlines()
    assert lines[:2] == [f'#use "{folder}/hol.ml";;', 'loadt "Library/a.ml";;']
    assert lines[2].endswith('judge.ml";;')


@pytest.mark.parametrize("changed", ["lib.ml", "hol.ml", "ocaml", "pa_j.cmo", "Library/a.ml", "Library/b.ml"])
def test_every_file_that_is_loaded_decides(folder: Path, changed: str) -> None:
    before = digest(folder, "Library/a.ml")
    (folder / changed).write_text((folder / changed).read_text() + " ")
    assert digest(folder, "Library/a.ml") != before


def test_a_file_that_is_not_loaded_decides_nothing(folder: Path) -> None:
    before = digest(folder, "Library/a.ml")
    (folder / "other.ml").write_text("let y = 2;;")
    assert digest(folder, "Library/a.ml") == before
    assert digest(folder) != before


@pytest.mark.parametrize("missing", ["ocaml", "hol.ml", "pa_j.cmo"])
def test_a_folder_without_hol_light_is_told_with_its_packages(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(SettingsError, match="apt-get install hol-light libnum-ocaml-dev"):
        digest(folder)


@pytest.mark.parametrize(
    ("file", "package"),
    [
        ("nums.cma", "libnum-ocaml-dev"),
        ("libcamlrun_shared.so", "ocaml-base"),
        ("camlp5/camlp5o.cma", "camlp5"),
    ],
)
def test_a_library_that_is_missing_is_told_with_its_package(folder: Path, file: str, package: str) -> None:
    (folder.parent / "ocaml" / file).unlink()
    with pytest.raises(SettingsError, match=f"apt-get install {package}"):
        digest(folder)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"lean": "/x"}, "unknown key 'lean'"),
        ({"folder": "hol"}, "folder: must be an absolute path"),
        ({"folder": '/a";;'}, "folder: must be an absolute path"),
        ({"load": "Library/a.ml"}, "load: must be a list"),
        ({"load": ['a";; exit 0;; "']}, "load: must be a list"),
        ({"load": ["Library/none.ml"]}, "none.ml cannot be read"),
    ],
)
def test_what_is_wrong_with_a_table_names_the_key(
    folder: Path, keys: dict[str, object], problem: str
) -> None:
    with pytest.raises(SettingsError, match=problem):
        environment("e", {"folder": str(folder), **keys}, NOWHERE)


def test_the_primitives_of_a_program_are_read() -> None:
    sections = {b"CODE": b"code", b"PRIM": b"caml_a\0caml_b\0", b"SYMB": b"s"}
    table = b"".join(name + len(content).to_bytes(4, "big") for name, content in sections.items())
    file = b"#!/x\n" + b"".join(sections.values()) + table + len(sections).to_bytes(4, "big") + MAGIC
    assert primitives(file) == [b"caml_a", b"caml_b"]


@pytest.mark.parametrize("file", [b"", b"text", bytes(4) + MAGIC, b"CODE\0\0\0\1" + b"\0\0\0\1Caml1999X031"])
def test_a_program_of_another_sort_is_refused(file: bytes) -> None:
    with pytest.raises(OCamlError):
        primitives(file)
