"""Export step, the fields of one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from farm.assembly.segments import LineMap
from farm.documents import encoded
from farm.judging.advisories import advisories
from farm.judging.audit import UNREBUILT, Audit
from farm.judging.forgeable import is_forgeable
from farm.judging.verdict import Outcome, Reason, Verdict
from farm.store.records import Judged, StoredVerdict, parsed
from farm.version import farm_version


@dataclass(frozen=True, kw_only=True, slots=True)
class Marking:
    """Which run's verdicts are written, and its profile of assembly."""

    run_id: str
    profile: str


def fields(
    job: Judged, verdict: StoredVerdict, entry: Mapping[str, object] | None, marking: Marking
) -> dict[str, object]:
    """Return the fields that an export writes into a line: `predicted_proof`, `proof_status`, `farm`.

    ``entry`` are the fields that the line has, None if they are not known.
    """
    audit, lines = verdict.audit, job.lines(entry)
    return {
        "predicted_proof": job.program,
        "proof_status": _proof_status(verdict.outcome, verdict.reason),
        "farm": {
            "verdict": verdict.outcome,
            "reason": verdict.reason,
            "detail": job.detail(lines),
            "error_kind": verdict.particulars.error_kind or None,
            "messages": [_told(each, ("severity", "text"), lines) for each in parsed(verdict.messages_json)],
            "policy": [_told(each, ("rule", "action", "text"), lines) for each in parsed(verdict.hits_json)],
            "tier": job.tier,
            "statement": verdict.statement,
            "trusts": verdict.trusts,
            "rests_on_sorry_of": list(verdict.rests_on_sorry_of),
            "answers": [] if audit is None else [encoded(each) for each in audit.answers],
            "uses_choice": audit and audit.uses_choice,
            "module_sha256": audit and audit.module_sha256,
            "sealed_sha256": audit and audit.sealed_sha256,
            "audit": audit and _audit(audit),
            "warnings": [
                {"code": code, "field": origin, "line": line, "column": column}
                for code, origin, line, column in job.warnings
            ],
            **_circumstances(job, verdict),
            "profile": marking.profile,
            "run_id": marking.run_id,
        },
    }


def _audit(audit: Audit) -> dict[str, object]:
    """Return the fields of an audit, without what the farm alone compares."""
    return {name: value for name, value in encoded(audit).items() if name != "sentence"}


def _circumstances(job: Judged, verdict: StoredVerdict) -> dict[str, object]:
    """Return the facts of a verdict: the program, the environment, and the resources used."""
    return {
        "wall_seconds": round(verdict.wall_seconds, 3),
        "cpu_seconds": round(verdict.cpu_seconds, 3),
        "peak_memory_mib": round(verdict.peak_memory_kib / 1024, 1),
        "environment": job.environment,
        "environment_digest": verdict.environment_digest,
        "program_sha256": job.sha256.hex(),
        "assembled": not job.is_brought,
        "preamble": verdict.preamble,
        "isolation": verdict.isolation,
        "forgeable": is_forgeable(verdict.isolation),
        "contested": verdict.contested,
        "unrebuilt": UNREBUILT in verdict.trusts,
        "toolchain": verdict.toolchain,
        "advisories": _known_holes(verdict.toolchain),
        "checker_version": verdict.checker_version,
        "farm_version": farm_version(),
        "attempts": job.attempt,
        "trace_id": verdict.trace_id,
    }


@lru_cache(maxsize=256)  # called for every line
def _known_holes(toolchain: str) -> tuple[str, ...]:
    return tuple(known.id for known in advisories(toolchain) or ())


@lru_cache(maxsize=256)
def _proof_status(outcome: str, reason: str) -> str:
    return Verdict(outcome=Outcome(outcome), reason=Reason(reason), detail="").proof_status


def _told(found: Mapping[str, Any], words: tuple[str, ...], lines: LineMap) -> dict[str, object]:
    """Return a message of Lean or the policy with its place in the program and, if any, in a field."""
    line, column = found["line"], found["column"]
    told = {word: found[word] for word in words} | {"line": line, "column": column}
    if place := lines.locate(line, column):
        told["in"] = {"field": place.origin, "line": place.line, "column": place.column}
    return told
