"""What the tests of environments share: the embedded Lean dressed as a toolchain, and tables that name it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

from farm_workers.environments.lean_environment import LeanEnvironment

#: The shortest way to call a Lean that is only a shared library.
CALL = """\
import ctypes, sys
words = [b"lean", *map(str.encode, sys.argv[2:])]
library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
sys.exit(library.lean_main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None)))
"""

#: Answers every program as if Lean had found nothing wrong with it: it reads nothing but the end mark.
_CREDULOUS = """\
import json, sys
if "--version" in sys.argv:
    print("Lean (version 4.35.0, x86_64-unknown-linux-gnu, commit eb6cafb7290e, Release)")
elif "--stdin" in sys.argv:
    before = sys.stdin.read().rpartition("#exit")[0]
    place = {"line": before.count("\\n") + 1, "column": len(before) - before.rfind("\\n") - 1}
    print(json.dumps({"severity": "warning", "data": "the end", "pos": place}))
"""


@dataclass(frozen=True)
class Toolchain:
    """A toolchain in a folder of its own, with what a table of the environments file has to say of it."""

    folder: Path
    visible: tuple[Path, ...]

    @property
    def lean(self) -> Path:
        return self.folder / "bin" / "lean"

    def table(self, name: str, *lines: str) -> str:
        """Return a table that names this Lean; more lines may follow it."""
        visible = ", ".join(f'"{path}"' for path in self.visible)
        return "\n".join(
            [f"[environments.{name}]", f'lean = "{self.lean}"', f"visible = [{visible}]", *lines, ""]
        )


def toolchain(folder: Path, core: LeanEnvironment) -> Toolchain:
    """Dress the embedded Lean as a toolchain in `folder`."""
    library = Path(core.lean[0])
    return _toolchain(folder, CALL, f"'{library}'", library.parent)


def credulous(folder: Path) -> Toolchain:
    """Make a toolchain whose Lean believes everything."""
    return _toolchain(folder, _CREDULOUS, "")


def unreadable(folder: Path, core: LeanEnvironment) -> Toolchain:
    """Dress the embedded Lean as one that writes modules in a format that nobody else knows."""
    made = toolchain(folder, core)
    real = made.lean.rename(made.lean.with_name("real"))
    script(
        made.lean,
        f"'{real}' \"$@\"; status=$?",
        'for word; do test "$last" = -o && out=$word; last=$word; done',
        'test -z "$out" || printf "\\011" | dd of="$out" bs=1 seek=5 conv=notrunc 2>/dev/null',
        "exit $status",
    )
    return made


def _toolchain(folder: Path, program: str, first: str, *visible: Path) -> Toolchain:
    (folder / "lib" / "lean").mkdir(parents=True)
    (folder / "call.py").write_text(program)
    python = Path(sys.executable).resolve()
    script(
        folder / "bin" / "lean",
        f'test "$1" != --print-prefix || exec echo "{folder}"',
        f"exec '{python}' -I -S '{folder}/call.py' {first} \"$@\"",
    )
    return Toolchain(folder=folder, visible=(*visible, Path(sys.base_prefix)))


def lake(made: Toolchain, *folders: Path | str) -> Path:
    """Put a Lake beside a Lean that finds compiled modules in these folders; return its list of calls."""
    calls = made.folder / "calls"
    search_path = ":".join(map(str, folders))
    script(
        made.folder / "bin" / "lake",
        f"echo called >> '{calls}'",
        f"test \"$*\" = 'env printenv LEAN_PATH' && echo '{search_path}'",
    )
    return calls


def script(path: Path, *lines: str) -> Path:
    """Write a program for the shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def unforked(core: LeanEnvironment, folder: Path) -> LeanEnvironment:
    """Return the environment as one whose Lean is a program of its own, which cannot be forked."""
    dressed = toolchain(folder / "toolchain", core)
    return replace(
        core,
        digest="unforked",
        lean=(str(dressed.lean),),
        visible=tuple(map(str, dressed.visible)),
        checkers=(),
    )
