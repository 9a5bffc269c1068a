"""A project of several files, compiled, and its theorems as lines: each with all of its file before it."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from farm_workers.environments.lean_environment import LeanEnvironment

from tests.toolchains import toolchain

CASES = Path(__file__).parent / "cases" / "contexts"
#: The modules of the project, each after those that it imports.
MODULES = ("Shop.Price", "Shop.Cart", "Shop.Order")

_DECLARED = re.compile(r"^(?:theorem|instance)[^\n]*(?:\n[ \t]+[^\n]*)*", re.MULTILINE)
_PROOF = re.compile(r":=|\n\s*(?=\|)|\bwhere\b")


def shop(core: LeanEnvironment, folder: Path) -> LeanEnvironment:
    """Compile the project and return the environment in which it can be imported."""
    lean = toolchain(folder / "toolchain", core).lean
    modules = folder / "modules"
    path = [str(modules), *core.lean_path]
    for module in MODULES:
        name = Path(*module.split("."))
        made = modules / name.with_suffix(".olean")
        made.parent.mkdir(parents=True, exist_ok=True)
        command = [lean, "-R", CASES, "-o", made, CASES / name.with_suffix(".lean")]
        subprocess.run(command, check=True, env={"LEAN_PATH": ":".join(path), "PATH": "/usr/bin:/bin"})
    return dataclasses.replace(core, name="shop", digest="shop", lean_path=tuple(path))


def theorems() -> Iterator[dict[str, object]]:
    """Yield each theorem of the project as a line with its own proof."""
    for module in MODULES:
        text = (CASES / Path(*module.split("."))).with_suffix(".lean").read_text()
        for found in _DECLARED.finditer(text):
            declared = found[0]
            proof = _PROOF.search(declared)
            assert proof is not None
            yield {
                "name": re.sub(r"[^\w.]+", "_", declared.split()[1]),
                "context": text[: found.start()],
                "formal_statement": declared[: proof.start()].rstrip(),
                "generation": f"```lean\n{declared[proof.start() :].strip()}\n```",
            }
