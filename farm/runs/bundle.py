"""Bundle step: writes a proved line as files that others can check without the farm.

The files are those of comparator, the judge of the Lean project: a module that states the theorem, one that
proves it, and a configuration that names the theorem and the axioms it may rest on. Format:
https://github.com/leanprover/comparator.
"""

from __future__ import annotations

import json
from pathlib import Path

from farm.errors import UsageError
from farm.judging.audit import COMPARED
from farm.judging.verdict import Outcome
from farm.store.queries import StatedLine
from farm.store.records import Judged, StoredVerdict
from farm.version import VERSION

CHALLENGE, SOLUTION = "Challenge", "Solution"
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


def write_bundle(folder: Path, line: Judged, stated: StatedLine | None) -> list[Path]:
    """Write the files of a proved line into a new folder, and return their paths.

    Raises UsageError for a line that is not proved, or was compared with no statement, and for a folder that
    is there.
    """
    verdict = _proved(line)
    if stated is None:
        raise UsageError(f"line {line.line} of run {line.run_id} has no statement, so nobody could check it")
    files = {
        f"{CHALLENGE}.lean": stated.challenge,
        f"{SOLUTION}.lean": line.program,
        "config.json": _json(_config(line, verdict, stated)),
        "lakefile.toml": _LAKEFILE,
        "lean-toolchain": _release(verdict.toolchain) + "\n",
        "verdict.json": _json(_facts(line, verdict)),
        "README.md": _README.format(
            version=VERSION,
            where=f"run {line.run_id}, line {line.line}",
            theorem=_target(verdict),
            toolchain=verdict.toolchain,
            environment=line.environment,
        ),
    }
    try:
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except FileExistsError:
        raise UsageError(f"{folder} is there; name a folder that is not") from None
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error}") from error
    return [folder / name for name in files]


def _proved(line: Judged) -> StoredVerdict:
    """Return the verdict of a line that can be bundled. Raises UsageError."""
    where = f"line {line.line} of run {line.run_id}"
    verdict = line.verdict
    if verdict is None or verdict.outcome != Outcome.PROVED:
        raise UsageError(f"{where} is not proved; list proved lines with: farm show --verdict proved")
    if verdict.statement != COMPARED or verdict.audit is None or not verdict.audit.target:
        raise UsageError(f"{where} was compared with no statement, so nobody could say what is proved")
    if verdict.audit.answers:
        given = ", ".join(each.name for each in verdict.audit.answers[:3])
        raise UsageError(f"{where} gives {given}, which its statement leaves open; comparator rejects that")
    if verdict.rests_on_sorry_of:
        open_parts = ", ".join(verdict.rests_on_sorry_of[:3])
        raise UsageError(f"{where} rests on the sorry of {open_parts}, which comparator rejects")
    return verdict


def _target(verdict: StoredVerdict) -> str:
    return (verdict.audit and verdict.audit.target) or ""


def _config(line: Judged, verdict: StoredVerdict, stated: StatedLine) -> dict[str, object]:
    """Return comparator's configuration. Raises UsageError where the proof's theorem has another name."""
    target = _target(verdict)
    if target.rpartition(".")[2] != stated.name.rpartition(".")[2]:
        raise UsageError(
            f"line {line.line} of run {line.run_id} proves the statement of {stated.name} under the name "
            f"{target}; comparator needs one name for both"
        )
    more = verdict.audit.axioms if verdict.audit and stated.native else ()
    return {
        "challenge_module": CHALLENGE,
        "solution_module": SOLUTION,
        "theorem_names": [target],
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
