"""The store step: finds statements that are proved and disproved, and marks the verdicts that say so.

The seal says what a proved theorem states, as a digest of its compiled type (`farm.judging.audit.Sentence`).
Two verdicts contradict each other where the sentences differ in nothing but the negation, in environments
with one digest, and where each proof uses no axiom that the other was not allowed. What a text looks like
plays no part.

Where one key, or the manifests of one login, brought all lines of both verdicts, the two are taken back.
Otherwise they are marked as contested and stay what they are: no line changes the verdict of another's line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple

from psycopg import Cursor
from psycopg.rows import DictRow

from farm.assembly.challenge import ALLOWED_AXIOMS
from farm.judging.audit import ADMITTED, ANSWERED, LIBRARY, Sentence
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, Verdict, contradiction
from farm.store.attempt import Claim, Decision

# Each check is looked up by its id, and its contraries by their key, whatever statistics say (OFFSET 0 keeps
# that apart). Lean's own axioms are never a reason to compare nothing.
_CONTRARY = """
    SELECT own.check_id AS id, other.check_id AS contrary, own.uses || other.uses AS uses
    FROM unnest(CAST(%(ids)s AS bigint[])) AS asked (id)
    CROSS JOIN LATERAL (SELECT * FROM sentences WHERE check_id = asked.id LIMIT 1) AS own
    CROSS JOIN LATERAL (
        SELECT * FROM sentences WHERE key = own.key AND negated = NOT own.negated OFFSET 0
    ) AS other
    WHERE other.uses <@ (own.allows || CAST(%(usual)s AS text[]))
      AND own.uses <@ (other.allows || CAST(%(usual)s AS text[]))
"""
_OWNERS = """
    SELECT DISTINCT asked.id, owner
    FROM unnest(CAST(%(ids)s AS bigint[])) AS asked (id)
    CROSS JOIN LATERAL (SELECT run_id FROM jobs WHERE check_id = asked.id OFFSET 0) AS line
    CROSS JOIN LATERAL (
        SELECT coalesce('key ' || nullif(owner, ''), 'login ' || submitted_by) AS owner
        FROM runs WHERE id = line.run_id LIMIT 1
    ) AS run
"""
# No later line shares what is taken back.
_TAKE_BACK = "SELECT take_back(%(ids)s, %(detail)s)"
_CONTEST = "SELECT contest(%(ids)s)"
# Proofs do not wait for each other. All take their locks in one order, so no two transactions wait for
# each other, and none takes a lock twice: of a shared lock that becomes exclusive each may hold a half.
_LOCK = """
    SELECT count(CASE WHEN exclusive THEN pg_advisory_xact_lock(key)
                      ELSE pg_advisory_xact_lock_shared(key) END)
    FROM (
        SELECT key, bool_or(negated) AS exclusive
        FROM unnest(CAST(%(keys)s AS bigint[]), CAST(%(negated)s AS boolean[])) AS each (key, negated)
        GROUP BY key ORDER BY key OFFSET 0
    ) AS keys
"""

#: A proof that rests on one of these is none of the statement alone.
_WEAKER = frozenset({ADMITTED, ANSWERED, LIBRARY})
#: The most checks that a sentence names.
_MOST_NAMED = 10
_USUAL = frozenset(ALLOWED_AXIOMS)


class Asked(NamedTuple):
    """A verdict that another may contradict: its check, and what its theorem states in its environment.

    With `is_both` it is that of one answer that proves and disproves its statement.
    """

    check_id: int
    key: bytes
    sentence: Sentence
    is_both: bool

    @property
    def uses_leans_axioms(self) -> bool:
        """Whether its proofs rest on Lean's own axioms alone."""
        return _USUAL.issuperset(self.sentence.uses)

    @property
    def row(self) -> dict[str, object]:
        """The values that the store keeps."""
        stated = self.sentence
        return {
            "key": self.key.hex(),
            "negated": stated.negated,
            "uses": list(stated.uses),
            "allows": list(stated.allows),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """What became of recorded verdicts whose statements are proved and disproved by now.

    `disputed` are the verdicts that replace those of recorded checks, `contested` the recorded checks whose
    verdicts stay and are marked. Of both, and of answers that prove and disprove, `alarming` are those where
    both proofs rest on Lean's own axioms alone.
    """

    disputed: Mapping[int, Verdict] = field(default_factory=dict)
    contested: frozenset[int] = frozenset()
    alarming: frozenset[int] = frozenset()


_NOTHING = Settled()


def asked_of(claim: Claim, decision: Decision) -> Asked | None:
    """Return what another verdict may contradict: of a proof or disproof that a seal has compared, else None.

    One answer that proves and disproves its statement counts as a disproof.
    """
    verdict, report = decision.verdict, decision.report
    sentence = None if report.audit is None else report.audit.sentence
    is_decided = verdict.outcome in (Outcome.PROVED, Outcome.DISPROVED)
    if sentence is None or not (is_decided or verdict.reason is Reason.CONTRADICTION):
        return None
    if report.tier == Tier.LEAN or not _WEAKER.isdisjoint(report.trusts):
        return None
    key = sha256(f"{decision.digest}\0{sentence.key}".encode()).digest()
    return Asked(claim.check_id, key, sentence, verdict.reason is Reason.CONTRADICTION)


def lock(cursor: Cursor[DictRow], asked: Sequence[Asked]) -> None:
    """Wait until no other transaction records a contrary verdict on these statements, and make such wait.

    To be called first in a transaction: of two with contrary verdicts the later one then finds the other's.
    """
    keys = [int.from_bytes(each.key[:8], signed=True) for each in asked]
    cursor.execute(_LOCK, {"keys": keys, "negated": [each.sentence.negated for each in asked]})


def settle(cursor: Cursor[DictRow], recorded: Sequence[Asked]) -> Settled:
    """Take back or mark the verdicts on statements that are proved and disproved by now.

    This transaction has stored those that are `recorded`.
    """
    if not recorded:
        return _NOTHING
    values = {"ids": [each.check_id for each in recorded], "usual": list(ALLOWED_AXIOMS)}
    found = cursor.execute(_CONTRARY, values).fetchall()
    both = frozenset(each.check_id for each in recorded if each.is_both and each.uses_leans_axioms)
    settled = _settled(cursor, found) if found else _NOTHING
    return replace(settled, alarming=settled.alarming | both) if both else settled


def _settled(cursor: Cursor[DictRow], found: Sequence[DictRow]) -> Settled:
    pairs = [(row["id"], row["contrary"]) for row in found]
    owners = _owners(cursor, {each for pair in pairs for each in pair})
    own, strange = set[int](), set[int]()
    for pair in pairs:
        whose = owners[pair[0]] | owners[pair[1]]
        (own if len(whose) == 1 else strange).update(pair)
    strange -= own
    ids = {one for one, _ in pairs}
    if strange:
        cursor.execute(_CONTEST, {"ids": sorted(strange)})
    return Settled(
        disputed=dict.fromkeys(ids & own, _taken_back(cursor, own)) if own else {},
        contested=frozenset(ids & strange),
        alarming=frozenset(row["id"] for row in found if _USUAL.issuperset(row["uses"])),
    )


def _owners(cursor: Cursor[DictRow], ids: Iterable[int]) -> Mapping[int, set[str | None]]:
    """Return the owners of the lines of checks: keys, logins, and None for manifests of earlier releases."""
    found = defaultdict[int, set[str | None]](set)
    for row in cursor.execute(_OWNERS, {"ids": sorted(ids)}):
        found[row["id"]].add(row["owner"])
    return found


def _taken_back(cursor: Cursor[DictRow], own: Iterable[int]) -> Verdict:
    """Take the verdicts of checks back, and return what replaces them."""
    ids = sorted(own)
    said = contradiction(f"checks {', '.join(map(str, ids[:_MOST_NAMED]))}")
    cursor.execute(_TAKE_BACK, {"detail": said.detail, "ids": ids})
    return said
