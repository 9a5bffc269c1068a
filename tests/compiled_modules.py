"""Modules that Lean compiled from texts: by forks of an image, each text once, or by a Lean of its own."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

from farm_workers.box import once as box
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import Question

from farm.limits import Limits
from tests.bench.checks.bare import launched, variables

HEADER = "prelude\nimport Core\n"


@dataclass(frozen=True, kw_only=True)
class CompiledModules:
    """Compiles programs of an environment; a fork writes the module that a fresh Lean writes.

    Every module has the name `_stdin`, which its private names contain.
    """

    leans: LeanRunner
    environment: LeanEnvironment
    folder: Path

    def __call__(self, text: str, header: str = HEADER) -> Path:
        """Return the module of a header and a text."""
        program = header + text
        key = hashlib.sha256(f"{self.environment.digest}\n{program}".encode()).hexdigest()
        file = self.folder / f"{key}.olean"
        if not file.exists():
            question = Question.of(program, self.environment, Limits(), box.never)
            with self.leans.compiled(question) as reply:
                assert reply.module is not None, reply.report
                file.write_bytes(reply.module.read())
        return file


def compiled_beside(source: Path, text: str, environment: LeanEnvironment, *more_path: Path) -> Path:
    """Have a Lean of its own compile a text, and return the module, which is beside the source."""
    source.write_text(text)
    module = source.with_suffix(".olean")
    path = ":".join([*environment.lean_path, *map(str, more_path)])
    said = subprocess.run(
        launched([*environment.lean, "-j1", "-o", str(module), str(source)]),
        cwd=source.parent,
        env=variables(environment) | {"LEAN_PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert said.returncode == 0, said.stdout
    return module
