"""Bundle step: writes a proved line as files that others can check without the farm.

The files are those of comparator, the judge of the Lean project: a module that states the theorem, one that
proves it, and a configuration that names the theorem and the axioms it may rest on. Format:
https://github.com/leanprover/comparator. Where the sealed module could be made again, it is among them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from farm.errors import UsageError
from farm.judging.audit import COMPARED
from farm.judging.verdict import Outcome
from farm.store.queries import StatedLine
from farm.store.records import Judged, StoredVerdict
from farm.version import farm_version

CHALLENGE, SOLUTION = "Challenge", "Solution"
#: The file of the sealed module: no name that Lake builds.
SEALED = "Sealed.olean"
_LAKEFILE = f"""\
name = "proof"
defaultTargets = ["{CHALLENGE}"]

[[lean_lib]]
name = "{CHALLENGE}"

[[lean_lib]]
name = "{SOLUTION}"
"""
_README = """\
The farm {version} sealed a proof of {theorem}: {where}, {toolchain}, environment {environment}.
To check it without the farm, install that Lean, comparator, landrun and lean4export, and add the library of
the environment to lakefile.toml. Read Challenge.lean, which states the theorem, and build nothing by hand:
    lake env comparator config.json
"""
_README_OF_MODULE = """
Sealed.olean is the module that the farm's kernel was given, SHA-256 {sha256}.{note}
Other kernels read it as well, with LEAN_PATH naming the folders of the environment:
    LEAN_PATH=$PWD:$LEAN_PATH leanchecker Sealed
    LEAN_PATH=$PWD:$LEAN_PATH lean4export Sealed > export.ndjson
They say that each theorem in it is true as it is stated there; comparator says that one is Challenge.lean's.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class SealedModule:
    """The module that the kernel was given, made again; `note` is a sentence about its digest, or ""."""

    content: bytes
    note: str = ""

    @property
    def sha256(self) -> str:
        """The digest of the file, in hex."""
        return hashlib.sha256(self.content).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """A proved line with all that others need to check it."""

    line: Judged
    verdict: StoredVerdict
    stated: StatedLine

    @classmethod
    def of(cls, line: Judged, stated: StatedLine | None) -> Bundle:
        """Return the bundle of a line. Raises UsageError if a line cannot be checked without the farm.

        That is a line that is not proved, was compared with no statement, rests on a sorry, or has another
        name than its statement.
        """
        verdict = _proved(line)
        if stated is None:
            raise UsageError(f"{_place(line)} has no statement to check it against")
        target = _target(verdict)
        if target.rpartition(".")[2] != stated.name.rpartition(".")[2]:
            raise UsageError(
                f"{_place(line)} proves the statement of {stated.name} under the name {target}; comparator "
                "needs one name for both"
            )
        return cls(line=line, verdict=verdict, stated=stated)

    def texts(self, module: SealedModule | None = None) -> dict[str, str]:
        """Return the text files by their names; with a module, the README and the verdict describe it."""
        line, verdict = self.line, self.verdict
        readme = _README.format(
            version=farm_version(),
            where=f"run {line.run_id}, line {line.line}",
            theorem=_target(verdict),
            toolchain=verdict.toolchain,
            environment=line.environment,
        )
        facts = _facts(line, verdict)
        if module is not None:
            note = module.note and f" {module.note}"
            readme += _README_OF_MODULE.format(sha256=module.sha256, note=note)
            facts |= {"module": SEALED, "sha256_of_module": module.sha256}
        return {
            f"{CHALLENGE}.lean": self.stated.challenge,
            f"{SOLUTION}.lean": line.program,
            "config.json": _json(_config(verdict, self.stated)),
            "lakefile.toml": _LAKEFILE,
            "lean-toolchain": _release(verdict.toolchain) + "\n",
            "verdict.json": _json(facts),
            "README.md": readme,
        }

    def write(self, folder: Path, module: SealedModule | None = None) -> list[Path]:
        """Write the files into a new folder, and return their paths. Raises UsageError if that fails."""
        files = {name: text.encode() for name, text in self.texts(module).items()}
        if module is not None:
            files[SEALED] = module.content
        try:
            folder.mkdir(parents=True)
            for name, content in files.items():
                (folder / name).write_bytes(content)
        except FileExistsError:
            raise UsageError(f"{folder} is there; name a folder that is not") from None
        except OSError as error:
            raise UsageError(f"{folder} cannot be written: {error}") from error
        return [folder / name for name in files]


def _proved(line: Judged) -> StoredVerdict:
    """Return the verdict of a line that can be bundled. Raises UsageError."""
    where, verdict = _place(line), line.verdict
    if verdict is None or verdict.outcome != Outcome.PROVED:
        raise UsageError(f"{where} is not proved; list proved lines with: farm show --verdict proved")
    if verdict.statement != COMPARED or verdict.audit is None or not verdict.audit.target:
        raise UsageError(f"{where} was compared with no statement, so it proves nothing in particular")
    if verdict.audit.answers:
        given = ", ".join(each.name for each in verdict.audit.answers[:3])
        raise UsageError(f"{where} gives {given}, which its statement leaves open; comparator rejects that")
    if verdict.rests_on_sorry_of:
        open_parts = ", ".join(verdict.rests_on_sorry_of[:3])
        raise UsageError(f"{where} rests on the sorry of {open_parts}, which comparator rejects")
    return verdict


def _place(line: Judged) -> str:
    return f"line {line.line} of run {line.run_id}"


def _target(verdict: StoredVerdict) -> str:
    return (verdict.audit and verdict.audit.target) or ""


def _config(verdict: StoredVerdict, stated: StatedLine) -> dict[str, object]:
    """Return comparator's configuration."""
    more = verdict.audit.axioms if verdict.audit and stated.native else ()
    return {
        "challenge_module": CHALLENGE,
        "solution_module": SOLUTION,
        "theorem_names": [_target(verdict)],
        "permitted_axioms": sorted({*stated.axioms, *more}),
        "enable_nanoda": False,
    }


def _facts(line: Judged, verdict: StoredVerdict) -> dict[str, object]:
    """Return what the farm found: the verdict, and digests by which a rebuilt module can be compared."""
    audit = verdict.audit
    return {
        "verdict": verdict.outcome,
        "reason": verdict.reason,
        "tier": line.tier,
        "theorem": _target(verdict),
        "axioms": list(audit.axioms) if audit else [],
        "trusts": verdict.trusts,
        "toolchain": verdict.toolchain,
        "environment": line.environment,
        "environment_digest": verdict.environment_digest,
        "program_sha256": line.sha256.hex(),
        "module_sha256": audit and audit.module_sha256,
        "sealed_sha256": audit and audit.sealed_sha256,
        "farm_version": verdict.checker_version,
    }


def _release(toolchain: str) -> str:
    """Return the toolchain as elan names it: of ``Lean 4.35.0 (...)`` that is leanprover/lean4:v4.35.0."""
    number = next((word for word in toolchain.split() if word[:1].isdigit()), "")
    return f"leanprover/lean4:v{number}" if number else toolchain


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
