"""Bundle step: makes the sealed module of a proved line again, and compares it with the line's record."""

from __future__ import annotations

import hashlib

from farm.assembly.challenge import Challenge
from farm.errors import FarmError, UsageError
from farm.judging.assurance import Assurance
from farm.judging.audit import Audit
from farm.judging.job import Check
from farm.judging.verdict import Outcome, judge
from farm.limits import Limits
from farm.runs.bundle import Bundle, SealedModule
from farm.version import farm_version
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.machine.opening import Machine

#: A line that was proved within its own limits on another machine is given more here.
_LIMITS = Limits(wall_seconds=600.0, cpu_seconds=1200.0)
_WHOLE = "The farm sealed the proof below its context, with the recorded digest; this is both in one module."


def resealed(machine: Machine, bundle: Bundle) -> SealedModule:
    """Return the sealed module of a bundle's proof.

    Raises UsageError if this machine cannot make it, and FarmError if it makes another one than was recorded;
    the message names the difference.
    """
    recorded = bundle.verdict.audit
    if recorded is None or recorded.sealed_sha256 is None:
        raise UsageError("it was judged where Lean is not forked, and nothing is sealed there")
    environment = _environment(machine, bundle)
    content, audit = _sealed(machine, bundle, environment)
    found = hashlib.sha256(content).hexdigest()
    if found == recorded.sealed_sha256:
        return SealedModule(content=content)
    if bundle.stated.context_end and _digests(machine, bundle, environment) == _of(recorded):
        return SealedModule(content=content, note=_WHOLE)
    raise FarmError(_difference(bundle, audit))


def _environment(machine: Machine, bundle: Bundle) -> LeanEnvironment:
    """Return the line's environment. Raises UsageError where this machine has none, or another."""
    name, digest = bundle.line.environment, bundle.verdict.environment_digest
    environment = machine.installed.lean(name)
    if environment.digest != digest:
        raise UsageError(
            f"the environment {name} of this machine has another Lean or library than the one that judged "
            f"the line (digest {environment.digest[:12]} here, {digest[:12]} there); run this where a worker "
            "serves that one"
        )
    return environment


def _check(bundle: Bundle) -> Check:
    stated = bundle.stated
    return Check.of(
        program=bundle.line.program,
        limits=_LIMITS,
        challenge=Challenge(program=stated.challenge, name=stated.name, context_end=stated.context_end),
        assurance=Assurance(tier=bundle.line.tier, native=stated.native, axioms=stated.axioms),
        context_end=stated.context_end,
        task=stated.task,
    )


def _sealed(machine: Machine, bundle: Bundle, environment: LeanEnvironment) -> tuple[bytes, Audit]:
    """Return the module that the kernel is given, with its audit. Raises UsageError where there is none."""
    kept = list[bytes]()
    report = machine.checker.check(_check(bundle), environment, keep=kept.append)
    verdict = judge(report)
    if verdict.outcome is not Outcome.PROVED:
        raise FarmError(f"judged again here it is {verdict.outcome} ({verdict.reason}): {verdict.detail}")
    if not kept or report.audit is None:
        raise UsageError(f"the Lean of {environment.name} cannot be forked here, so nothing is sealed")
    return kept[-1], report.audit


def _digests(machine: Machine, bundle: Bundle, environment: LeanEnvironment) -> tuple[str | None, str | None]:
    """Return the digests of the line judged as workers do it, below its shared context."""
    audit = machine.checker.check(_check(bundle), environment).audit
    return (None, None) if audit is None else _of(audit)


def _of(audit: Audit) -> tuple[str | None, str | None]:
    return audit.module_sha256, audit.sealed_sha256


def _difference(bundle: Bundle, audit: Audit) -> str:
    """Return a sentence that says what is at fault if the same proof gave another module."""
    recorded, then, now = bundle.verdict.audit, bundle.verdict.checker_version, farm_version()
    if then != now:
        return f"farm {then} judged the line, and this is farm {now}, which makes another module of it"
    if recorded is None or recorded.module_sha256 != audit.module_sha256:
        return (
            "Lean compiled the proof to another module than when it was judged; text that runs code while "
            "Lean reads it can do that. Both were proved"
        )
    return "the same compiled module was sealed to another one than when it was judged; please report this"
