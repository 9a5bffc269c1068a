"""Trust: what was refused although Lean accepted it, and whether the farm judges itself correctly."""

from __future__ import annotations

from farm_workers.metrics.registry import REFUSALS

from docker.monitoring.dashboards.board import Board
from docker.monitoring.dashboards.panels import (
    ALL,
    STEP,
    Number,
    Prom,
    Rows,
    Series,
    Sql,
    here,
    per_second,
    share,
)

_DISAGREE = "farm_kernels_disagree_total"
_ATTACKS = 'reason=~"crash|output_limit|process_limit"'
_GOOD_CANARY = here("farm_canary_timestamp_seconds", 'result="passed"')
_REFUSED = f'result=~"{"|".join(REFUSALS)}"'
_REFUSING = ", ".join(f"'{reason}'" for reason in REFUSALS)

_NOW = (
    Number(
        "Kernels disagree",
        """Modules that Lean's kernel accepted and the second kernel refused, since the workers started. Any
        number above 0 is a hole in a kernel or a forged proof: see FarmKernelsDisagree in the runbook.""",
        Prom(f"sum({here(_DISAGREE)})", now=True),
        bounds=[1],
    ),
    Number(
        "Seals refused",
        """Share of sealed modules in the time shown that were refused although Lean reported no error.
        Honest models make few; a model that searches for loopholes makes many.""",
        Prom(share("farm_seals_total", _REFUSED, window=ALL), now=True),
        unit="percentunit",
    ),
    Number(
        "Since the last good canary",
        """How long ago a worker last judged a known program correctly, for the environment where this is
        longest. Workers judge known programs when they start and before they blame a proof for a crash, so
        hours are normal on a quiet farm.""",
        Prom(
            f"max(time() - max by (environment) ({_GOOD_CANARY}))",
            now=True,
        ),
        unit="s",
    ),
    Number(
        "Workers that take no checks",
        """Workers that judged a known program wrongly and take no more checks. 0 is normal: see
        FarmWorkerUnhealthy in the runbook.""",
        Prom("count(farm_worker_info) - sum(farm_worker_healthy)", now=True),
        bounds=[1],
    ),
)

_OVER_TIME = (
    Series(
        "Seals refused by kind",
        """Modules per second that Lean compiled without error and the seal refused, by reason. axiom and
        statement_mismatch are the usual ways of cheating; malformed_olean and kernel mean that somebody
        tampered with a module.""",
        Prom(per_second("farm_seals_total", _REFUSED, by="result"), "{{result}}"),
        unit="ops",
        options={"stacked": True},
    ),
    Series(
        "Signals by rule",
        """Checks per second in which a rule of the text policy hit, by rule and action. Rules only report,
        except on the tier lean; a rule that rises with a new model shows what that model tries.""",
        Prom(
            f"sum by (rule, action) (rate(farm_policy_hits_total{STEP}))",
            "{{rule}} {{action}}",
        ),
        unit="ops",
    ),
    Series(
        "Kernels disagree",
        "The number above, over time and by environment.",
        Prom(f"sum by (environment) ({here(_DISAGREE)})", "{{environment}}"),
    ),
    Series(
        "Canaries",
        """Known programs that workers judged, since they started, by result. A `failed` that rises by one is
        one program that a worker judged wrongly; that worker then takes no more checks.""",
        Prom(
            f"sum by (environment, result) ({here('farm_canaries_total')})",
            "{{environment}} {{result}}",
        ),
    ),
    Series(
        "Proved and disproved",
        """Verdicts on statements that are proved and disproved, taken back or contested, since the workers
        started. lean: both proofs rest on Lean's own axioms alone, so one was forged: see FarmContradiction
        in the runbook. other: axioms of a dataset contradict each other.""",
        Prom(f"sum by (axioms) ({here('farm_contradictions_total')})", "{{axioms}}"),
    ),
    Series(
        "Verdicts by tier",
        """Proved lines per second by the tier that was asked for: kernel trusts only the kernel, audit also
        Lean's answers about the module, lean everything that Lean says.""",
        Prom(per_second("farm_checks_total", 'verdict="proved"', by="tier"), "{{tier}}"),
        unit="ops",
        options={"stacked": True},
    ),
    Series(
        "Crashes and cut outputs",
        """Rejected checks per second that crashed Lean, or wrote or started more than allowed. A model that
        attacks the farm shows here first; so does a node with broken memory.""",
        Prom(per_second("farm_checks_total", _ATTACKS, by="reason"), "{{reason}}"),
        unit="ops",
    ),
)

_FROM_VIEWS = (
    Rows(
        "Refused after Lean accepted, by run",
        """The 20 newest runs of manifests submitted in the time shown, with the lines that the seal refused
        by reason. A run that stands out has a model that found, or was taught, a trick.""",
        Sql(f"""
SELECT runs.created_at, run_id, reason, count(*) AS lines, count(DISTINCT problem) AS problems
FROM report.lines JOIN (
    SELECT run_id, created_at FROM report.runs
    WHERE owner IS NULL AND $__timeFilter(created_at) ORDER BY created_at DESC LIMIT 20
) AS runs USING (run_id)
WHERE reason IN ({_REFUSING})
GROUP BY 1, 2, 3 ORDER BY 1 DESC, 4 DESC
"""),  # noqa: S608 - constants
    ),
    Rows(
        "What the proofs of the chosen run rest on",
        """Proved lines of the run by tier, by whether the proof was compared with the line's statement, and
        by what it trusts besides the kernel. Only `compared` with an empty `trusts` on the tier kernel is a
        proof of the problem that rests on the kernel alone.""",
        Sql("""
SELECT tier, statement, array_to_string(trusts, ', ') AS trusts, isolation, toolchain, count(*) AS lines
FROM report.lines WHERE run_id = '$run' AND verdict = 'proved'
GROUP BY 1, 2, 3, 4, 5 ORDER BY lines DESC
"""),
    ),
    Rows(
        "Lines that somebody must look at",
        """Lines of the 20 newest runs of manifests submitted in the time shown on which the kernels
        disagree, or whose statement does not compile. The farm does not decide these; a person must. Batches
        over HTTP are not among them: the runbook has the query for those.""",
        Sql("""
SELECT runs.created_at, run_id, manifest, line, problem, environment, reason
FROM report.lines JOIN (
    SELECT run_id, created_at FROM report.runs
    WHERE owner IS NULL AND $__timeFilter(created_at) ORDER BY created_at DESC LIMIT 20
) AS runs USING (run_id)
WHERE reason IN ('kernels_disagree', 'contradiction', 'bad_challenge') ORDER BY 1 DESC LIMIT 100
"""),
        width=24,
    ),
    Rows(
        "Contested verdicts",
        """Lines judged in the time shown whose contrary a line of another key proves, batches over HTTP
        included. Both verdicts stay as they are: see FarmContradiction in the runbook.""",
        Sql("""
SELECT decided_at, run_id, manifest, line, problem, environment, verdict
FROM report.lines WHERE contested AND $__timeFilter(decided_at) ORDER BY 1 DESC LIMIT 100
"""),
        width=24,
    ),
)

TRUST = Board(
    uid="farm-trust",
    title="Farm: trust",
    description="What was refused although Lean accepted it, and whether the farm judges itself correctly.",
    panels=[*_NOW, *_OVER_TIME, *_FROM_VIEWS],
    has_runs=True,
    since="now-24h",
    refresh="5m",
)
