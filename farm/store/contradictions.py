"""The store step: finds statements that are proved and disproved, and takes back what was said of them.

Lines whose answer may disprove a statement refer to the challenge of its negation (`farm.assembly.negation`),
whose text determines that of the statement's challenge and is determined by it. So two lookups by digest find
all verdicts on a statement. Only verdicts by the same rules are compared: environment, axioms, compiler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from psycopg import Cursor
from psycopg.rows import DictRow

from farm.assembly.negation import negated_by, negation_to
from farm.characters import encoded
from farm.judging.audit import ADMITTED, ANSWERED
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, Verdict, contradiction
from farm.store.attempt import Claim, Decision

# The sides of a verdict: under the negation's challenge, a line that allows either may be proved as stated.
# Each check is looked up by digest and id (OFFSET 0 keeps that apart), whatever statistics say.
_CONTRARY = """
    WITH asked AS (
        SELECT * FROM unnest(
            CAST(%(ids)s AS bigint[]), CAST(%(statements)s AS bytea[]), CAST(%(negations)s AS bytea[]),
            CAST(%(disproofs)s AS boolean[])) AS asked (id, statement, negation, disproof)
    )
    SELECT DISTINCT asked.id, other.id AS contrary
    FROM asked
    JOIN LATERAL (SELECT * FROM checks WHERE id = asked.id LIMIT 1) AS own ON true
    JOIN LATERAL (SELECT environment_digest AS digest FROM verdicts WHERE check_id = asked.id LIMIT 1) AS mine
        ON true
    CROSS JOIN LATERAL (
        SELECT negation AS sha256 UNION ALL SELECT statement WHERE disproof
    ) AS under
    CROSS JOIN LATERAL (
        SELECT * FROM checks WHERE challenge_sha256 = under.sha256 AND status = 'done' OFFSET 0
    ) AS other
    JOIN LATERAL (SELECT * FROM verdicts WHERE check_id = other.id LIMIT 1) AS said ON true
    WHERE other.id <> asked.id AND other.environment = own.environment AND digest = said.environment_digest
      AND other.tier <> %(lean)s AND other.native = own.native
      AND coalesce(CAST(other.task AS jsonb) -> 'axioms', other.axioms)
          = coalesce(CAST(own.task AS jsonb) -> 'axioms', own.axioms)
      AND CASE
          WHEN reason = %(contradiction)s THEN true
          WHEN trusts && CAST(%(weaker)s AS text[]) THEN false
          WHEN verdict = 'disproved' THEN NOT disproof
          WHEN verdict <> 'proved' THEN false
          WHEN under.sha256 = negation AND coalesce(CAST(other.task AS jsonb) ->> 'task', '') <> 'either'
          THEN NOT disproof
          ELSE disproof END
"""
# No later line shares what is taken back.
_TAKE_BACK = """
    WITH kept AS (
        UPDATE verdicts
        SET verdict = %(verdict)s, reason = %(reason)s, detail = %(detail)s, decided_at = now()
        WHERE check_id = ANY(%(ids)s) AND reason <> %(reason)s RETURNING check_id
    )
    UPDATE checks SET identity = NULL FROM kept WHERE id = check_id
"""
# Proofs do not wait for each other. All take their locks in one order, so no two transactions wait for
# each other, and none takes a lock twice: of a shared lock that becomes exclusive each may hold a half.
_LOCK = """
    SELECT count(CASE WHEN exclusive THEN pg_advisory_xact_lock(key)
                      ELSE pg_advisory_xact_lock_shared(key) END)
    FROM (
        SELECT key, bool_or(disproof) AS exclusive
        FROM unnest(CAST(%(keys)s AS bigint[]), CAST(%(disproofs)s AS boolean[])) AS each (key, disproof)
        GROUP BY key ORDER BY key OFFSET 0
    ) AS keys
"""

#: A proof that rests on one of these is none of the statement alone.
_WEAKER = frozenset({ADMITTED, ANSWERED})
#: The most checks that a sentence names.
_MOST_NAMED = 10


class Asked(NamedTuple):
    """A recorded verdict: its check, the digests of the two challenges, and whether it is a disproof."""

    check_id: int
    statement: bytes
    negation: bytes
    disproof: bool


def asked_of(decided: Iterable[tuple[Claim, Decision]]) -> list[Asked]:
    """Return the verdicts that another one may contradict: proofs and disproofs that a seal has compared."""
    return [found for each in decided if (found := _asked(*each)) is not None]


def _asked(claim: Claim, decision: Decision) -> Asked | None:
    verdict, check = decision.verdict, claim.check
    is_both = verdict.reason is Reason.CONTRADICTION  # of one answer: then proofs of it are taken back
    if not (verdict.outcome in (Outcome.PROVED, Outcome.DISPROVED) or is_both) or check.challenge is None:
        return None
    if decision.report.tier == Tier.LEAN or not _WEAKER.isdisjoint(decision.report.trusts):
        return None
    stated = negated_by(check.challenge.program)
    if stated is not None:  # a disproof, or the proof of a line that states a negation itself
        return Asked(claim.check_id, _digest(stated), _digest(check.challenge.program), disproof=True)
    negation = negation_to(check.challenge)
    if negation is None:
        return None
    challenges = _digest(check.challenge.program), _digest(negation.challenge.program)
    return Asked(claim.check_id, *challenges, disproof=verdict.outcome is not Outcome.PROVED)


def _digest(program: str) -> bytes:
    return sha256(encoded(program)).digest()


def lock(cursor: Cursor[DictRow], asked: Sequence[Asked]) -> None:
    """Wait until no other transaction records a contrary verdict on these statements, and make such wait.

    To be called first in a transaction: of two with contrary verdicts the later one then finds the other's.
    """
    keys = [int.from_bytes(each.statement[:8], signed=True) for each in asked]
    cursor.execute(_LOCK, {"keys": keys, "disproofs": [each.disproof for each in asked]})


def settle(cursor: Cursor[DictRow], recorded: Sequence[Asked]) -> Mapping[int, Verdict]:
    """Make contradictions of the recorded verdicts whose statements are proved and disproved by now.

    Those of other lines are changed, too. Return the new verdicts by the recorded checks.
    """
    if not recorded or not (found := _contrary(cursor, recorded)):
        return {}
    ids = sorted({*found, *(each for others in found.values() for each in others)})
    said = contradiction(f"checks {', '.join(map(str, ids[:_MOST_NAMED]))}")
    values = {"verdict": said.outcome, "reason": said.reason, "detail": said.detail, "ids": ids}
    cursor.execute(_TAKE_BACK, values)
    return dict.fromkeys(found, said)


def _contrary(cursor: Cursor[DictRow], asked: Sequence[Asked]) -> dict[int, list[int]]:
    """Return the checks with the contrary verdict, by those of `asked` that have any."""
    ids, statements, negations, disproofs = map(list, zip(*asked, strict=True))
    values = {"ids": ids, "statements": statements, "negations": negations, "disproofs": disproofs}
    words = {"lean": Tier.LEAN, "contradiction": Reason.CONTRADICTION, "weaker": list(_WEAKER)}
    found: dict[int, list[int]] = {}
    for row in cursor.execute(_CONTRARY, values | words):
        found.setdefault(row["id"], []).append(row["contrary"])
    return found
