"""The worker step: claim checks, check them with no transaction open, judge them, record the verdicts."""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

from farm import tracing
from farm.errors import ServerDown
from farm.judging.report import Execution, Report
from farm.judging.verdict import Reason, Verdict, box_failed, judge
from farm.log import about, logger
from farm.store.attempt import Claim, Decision, Released
from farm.tracing.span import Span
from farm.version import farm_version
from farm_workers.environments.paths import hiding
from farm_workers.loop.backoff import retrying
from farm_workers.loop.context import Context
from farm_workers.loop.record import Ended
from farm_workers.metrics import events

_log = logger(__name__)


def work(context: Context) -> None:
    """Carry out checks until none waits, as one of the worker's threads.

    A thread that finds work calls the next, so one call wakes as many threads as there are checks.
    """
    with context.threads.occupy_slot() as has_place:
        claim = _next(context) if has_place else None
        if claim is not None:
            context.calling.set()
        while claim is not None:
            verify(context, claim)
            context.threads.give_way()
            claim = _next(context)


def _next(context: Context) -> Claim | None:
    if context.threads.stopping or not context.is_well:
        return None
    try:
        with context.threads.ask():
            return retrying(
                lambda: context.claims.take(context.threads.busy), unless=lambda: context.threads.stopping
            )
    except ServerDown:
        return None


def verify(context: Context, claim: Claim) -> None:
    """Carry out one leased check and queue its outcome for the recorder; nothing is raised."""
    with (
        tracing.child("farm.check", claim.traceparent, _asked(claim)) as span,
        about(check_id=claim.check_id, attempt=claim.attempt, trace_id=span.trace_id),
    ):
        report = _report(context, claim)
        if isinstance(report, Future):
            context.pending_reports.put(report, partial(_conclude, context, claim, span.traceparent))
        else:
            _settle(context, claim, report, span)


def _report(context: Context, claim: Claim) -> Report | Future[Report]:
    """Carry out one check and return its report, or the one that will come; nothing is raised."""
    began = time.monotonic()
    try:
        report = context.judges.check(
            claim.check,
            context.environments[claim.environment],
            cancelled=lambda: context.leases.is_lost(claim) or context.leases.is_recalled,
        )
    except Exception as error:  # noqa: BLE001 # the thread's edge: else the heartbeat keeps the check
        _log.exception("A check could not be carried out")
        return Report(run=Execution(box_error=f"{type(error).__name__}: {error}"))
    context.claims.note(time.monotonic() - began)
    return report


def _conclude(context: Context, claim: Claim, traceparent: str | None, report: Report) -> None:
    """Queue the outcome of a check whose report has arrived for the recorder; nothing is raised."""
    with (
        tracing.child("farm.conclude", traceparent, _asked(claim)) as span,
        about(check_id=claim.check_id, attempt=claim.attempt, trace_id=span.trace_id),
    ):
        _settle(context, claim, report, span)


def _settle(context: Context, claim: Claim, report: Report, span: Span) -> None:
    """Judge a report and queue the outcome for the recorder; nothing is raised."""
    try:
        ended = _ended(context, claim, report)
    except Exception as error:  # noqa: BLE001 # the thread's edge: else the heartbeat keeps the check
        _log.exception("A check could not be concluded")
        why = hiding(context.environments.get(claim.environment)).text(f"{type(error).__name__}: {error}")
        ended = _concluded(context, claim, Report(run=Execution(box_error=why)), box_failed(why))
    if span.traceparent is not None:
        ended = _traced(ended, span)
    if ended is None:
        context.leases.give_up(claim)
    else:
        context.recorder.put(ended)


def _asked(claim: Claim) -> dict[str, object]:
    """Return the span attributes of a check; none of them quotes a proof or a manifest."""
    return {
        "check_id": claim.check_id,
        "attempt": claim.attempt,
        "environment": claim.environment,
        "tier": None if claim.check.assurance is None else claim.check.assurance.tier,
        "queued_seconds": claim.waited_seconds,
    }


def _traced(ended: Ended | None, span: Span) -> Ended | None:
    """Add a check's outcome to its span, and return the outcome with the span."""
    if ended is None or isinstance(ended, Released):
        span.set_attributes(outcome="lost" if ended is None else ended.outcome)
        return ended
    claim, decision = ended
    run = decision.report.run
    span.set_attributes(
        verdict=decision.verdict.outcome,
        reason=decision.verdict.reason,
        wall_seconds=run.wall_seconds,
        cpu_seconds=run.cpu_seconds,
    )
    return claim, replace(decision, traceparent=span.traceparent)


def _ended(context: Context, claim: Claim, report: Report) -> Ended | None:
    """Return the outcome to record of a check; None if its lease was lost."""
    if context.leases.is_lost(claim):
        return None
    if context.leases.is_recalled:
        return Released.unharmed(claim, "the worker is stopping")
    told = hiding(context.environments[claim.environment]).report(report)
    return _concluded(context, claim, told, judge(told))


def _concluded(context: Context, claim: Claim, report: Report, verdict: Verdict) -> Ended:
    """Return the verdict, or a requeued check after a failure of the farm or of this machine."""
    _tell(report, verdict)
    if verdict.is_tried_again:
        events.farm_failed(claim.environment, verdict.reason)
    if verdict.reason is Reason.CONTRADICTION:
        _log.error("%s", verdict.detail)
    if verdict.reason is Reason.KERNELS_DISAGREE:
        _tell_of_disagreement(report, verdict)
    if verdict.may_be_the_machine and not context.health.examine(context.environments[claim.environment]):
        return _again(claim, verdict, failed=False)
    if verdict.is_tried_again and claim.failures + 1 < context.store.max_failures:
        return _again(claim, verdict, failed=True)
    return claim, _decision(context, claim, report, verdict)


def _tell(report: Report, verdict: Verdict) -> None:
    seconds = report.run.wall_seconds
    _log.debug("Checked: %s (%s) in %.3f s", verdict.outcome, verdict.reason, seconds)


def _tell_of_disagreement(report: Report, verdict: Verdict) -> None:
    if report.audit is not None:
        words = "%s; Lean left the module %s, and the kernels were given %s"
        _log.error(words, verdict.detail, report.audit.module_sha256, report.audit.sealed_sha256)


def _again(claim: Claim, verdict: Verdict, *, failed: bool) -> Released:
    _log.warning("The farm failed and will try again: %s", verdict.detail)
    outcome = verdict.outcome if failed else "returned"
    return Released(claim=claim, outcome=outcome, detail=verdict.detail, failed=failed)


def _decision(context: Context, claim: Claim, report: Report, verdict: Verdict) -> Decision:
    environment = context.environments[claim.environment]
    return Decision(
        report=report,
        verdict=verdict,
        digest=environment.digest,
        toolchain=environment.toolchain,
        checker_version=farm_version(),
    )
