"""Extraction step, formats: the lines of a theorem in the forms that other tools write and read. Pure.

Names of fields: cmu-l3/ntp-toolkit at 64c9047 (``full_proof_training_data``, ``training_data``), miniCTX's
conversion, and leanprover/leagent at 23e4659 (lines of its corpus).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from farm.datasets.theorems import SourceFile, Theorem, described, manifest_line, premises

Line = Mapping[str, Any]


def _farm(source: SourceFile, it: Theorem, environment: str | None) -> Iterator[Line]:
    yield manifest_line(source, it, environment)


def _ntp_toolkit(source: SourceFile, it: Theorem, _environment: str | None) -> Iterator[Line]:
    """Yield one line for a proof, or with states one for each step that has a goal."""
    decl, above = source.part(it.start, it.proof), source.part(0, it.start)
    if it.steps is None:
        yield {
            "file": source.path,
            "module": source.module,
            "declName": it.user_name,
            "decl": decl,
            "proof": source.part(it.proof, it.end),
            "srcUpToDecl": above,
        }
        return
    goals = it.goals or ()
    for step in it.steps:
        if step.before:
            yield {
                "state": "\n\n".join(goals[number] for number in step.before),
                "nextTactic": source.part(step.start, step.end),
                "srcUpToTactic": source.part(0, step.start),
                "declUpToTactic": source.part(it.start, step.start),
                "decl": source.part(it.start, it.end),
                "declId": f"{source.module}.{it.user_name}",
            }


def _minictx(source: SourceFile, it: Theorem, _environment: str | None) -> Iterator[Line]:
    proof, used = source.part(it.proof, it.end), premises(it)
    line, _ = source.place(it.start)
    yield {
        **({} if it.side is None else {"split": it.side.split, "level": it.side.level}),
        "srcContext": source.part(0, it.start),
        "theoremStatement": source.part(it.start, it.proof).rstrip(),
        "theoremName": it.user_name,
        "fileCreated": it.file_created and it.file_created.told(),
        "theoremCreated": it.created and it.created.told(),
        "file": source.path,
        "module": source.module,
        "positionMetadata": {"lineInFile": line},
        "dependencyMetadata": {
            "inFilePremises": bool(used["local"]),
            "numInFilePremises": len(used["local"]),
            "repositoryPremises": bool(used["repository"]),
            "numRepositoryPremises": len(used["repository"]),
            "numPremises": len(it.used),
        },
        "proofMetadata": {
            "hasProof": True,
            "proof": proof,
            "proofType": "tactic" if it.step_count else "term",
            "proofLengthLines": proof.count("\n") + 1,
            "proofLengthTokens": it.tokens,
        },
    }


def _leagent(source: SourceFile, it: Theorem, _environment: str | None) -> Iterator[Line]:
    known = described(source, it)
    uses, axioms = known.pop("premises"), known.pop("proof_axioms")
    yield {
        "name": it.user_name,
        **known,
        "body": source.part(it.start, it.end),
        "proof_script": source.part(it.proof, it.end),
        "proof_method": "tactic" if it.step_count else "term",
        "axioms": axioms,
        "premises": list(it.used),
        "deps": uses["local"] if isinstance(uses, dict) else [],
    }


#: The formats, by the word of ``--format``; only lines of ``farm`` can be submitted and checked as they are.
FORMATS: Mapping[str, Callable[[SourceFile, Theorem, str | None], Iterator[Line]]] = {
    "farm": _farm,
    "ntp-toolkit": _ntp_toolkit,
    "minictx": _minictx,
    "leagent": _leagent,
}
