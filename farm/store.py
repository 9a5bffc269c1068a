"""The store step: every change of state there is, each one transaction; the only module that commits.

PostgreSQL is the truth. A check is claimed by id, with an attempt number and a lease; it is finished, given
back or taken back only by whoever names that attempt. The state machine is `farm.job.TRANSITIONS`, repeated
here as ``WHERE status = ...``, so that a message delivered twice, a late result or a second sweep changes
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, Engine, RowMapping, TextClause, text

from farm.assurance import Assurance
from farm.challenge import Challenge
from farm.db import reaching
from farm.job import Check, Limits
from farm.policy import Action, Policy
from farm.verdict import Message, Report, Verdict

#: After so many attempts that the farm itself failed, a check ends as `judge_error`.
MAX_ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """An environment that a worker serves, as the store knows it.

    `checker` is what replays a compiled module through the kernel there, None where nothing does. Where
    modules cannot be audited it is not `audited`.
    """

    name: str
    digest: str
    toolchain: str
    checker: str | None = None
    audited: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A check that this worker holds: what to check, and the attempt under which to report it."""

    check_id: int
    attempt: int
    run_id: str
    environment: str
    check: Check


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What a worker found out about a check: facts, verdict, and with what it was judged."""

    report: Report
    verdict: Verdict
    digest: str
    toolchain: str
    checker_version: str


_REGISTER = text("""
    INSERT INTO environments (name, digest, toolchain, checker, audited, seen_at)
    VALUES (:name, :digest, :toolchain, :checker, :audited, now())
    ON CONFLICT (name) DO UPDATE SET
        digest = excluded.digest, toolchain = excluded.toolchain, checker = excluded.checker,
        audited = excluded.audited, seen_at = now()
""")

_CLAIM = text("""
    WITH claimed AS (
        UPDATE checks
        SET status = 'running', attempt = attempt + 1, lease_until = now() + :lease * interval '1 second'
        WHERE id = :id AND status = 'queued' AND environment = ANY(:served)
        RETURNING *
    ), attempted AS (
        INSERT INTO attempts (check_id, number, worker) SELECT id, attempt, :worker FROM claimed
    )
    SELECT claimed.*, programs.source, challenges.name AS challenge_name, challenges.source AS challenge
    FROM claimed JOIN programs ON programs.sha256 = claimed.program_sha256
    LEFT JOIN challenges ON challenges.sha256 = claimed.challenge_sha256
""")

_EXTEND = text("""
    UPDATE checks SET lease_until = now() + :lease * interval '1 second'
    FROM unnest(CAST(:ids AS bigint[]), CAST(:attempts AS smallint[])) AS held (id, attempt)
    WHERE checks.id = held.id AND checks.attempt = held.attempt AND status = 'running'
    RETURNING checks.id
""")

_FINISH = text("""
    WITH done AS (
        UPDATE checks SET status = 'done', lease_until = NULL
        WHERE id = :id AND attempt = :attempt AND status = 'running'
        RETURNING id, run_id, attempt
    ), ended AS (
        UPDATE attempts SET ended_at = now(), outcome = :verdict, detail = :detail
        FROM done WHERE check_id = done.id AND number = done.attempt
    )
    INSERT INTO verdicts (
        check_id, run_id, attempt, verdict, reason, detail, messages, hits, audit, accepted_first,
        wall_seconds, cpu_seconds, peak_memory_kib, isolation, environment_digest, toolchain, checker_version)
    SELECT id, run_id, attempt, :verdict, :reason, :detail, CAST(:messages AS jsonb),
           CAST(:hits AS jsonb), CAST(:audit AS jsonb), :accepted_first, :wall_seconds, :cpu_seconds,
           :peak_memory_kib, :isolation, :digest, :toolchain, :checker_version
    FROM done
    RETURNING check_id
""")

_GIVE_BACK = text("""
    WITH back AS (
        UPDATE checks SET status = 'queued', lease_until = NULL, published_at = NULL
        WHERE id = :id AND attempt = :attempt AND status = 'running'
        RETURNING id, attempt
    )
    UPDATE attempts SET ended_at = now(), outcome = :outcome, detail = :detail
    FROM back WHERE check_id = back.id AND number = back.attempt
    RETURNING check_id
""")

# A worker that died took its lease with it. The last attempt allowed ends the check instead of queueing it
# again: what kills its worker every time must not circle for ever.
_TAKE_BACK = text("""
    WITH expired AS (
        SELECT id, run_id, attempt, attempt >= :most AS spent FROM checks
        WHERE status = 'running' AND lease_until < now()
        FOR UPDATE SKIP LOCKED
    ), moved AS (
        UPDATE checks SET
            status = CASE WHEN spent THEN 'done' ELSE 'queued' END, lease_until = NULL, published_at = NULL
        FROM expired WHERE checks.id = expired.id
    ), ended AS (
        UPDATE attempts SET ended_at = now(), outcome = 'lost', detail = 'the worker stopped answering'
        FROM expired WHERE check_id = expired.id AND number = expired.attempt
    ), judged AS (
        INSERT INTO verdicts (
            check_id, run_id, attempt, verdict, reason, detail, messages, hits, wall_seconds, cpu_seconds,
            peak_memory_kib, isolation, environment_digest, toolchain, checker_version)
        SELECT id, run_id, attempt, 'judge_error', 'worker_lost',
               'every worker that took it stopped answering', '[]', '[]', 0, 0, 0, '', '', '',
               :checker_version
        FROM expired WHERE spent
    )
    SELECT count(*) FROM expired
""")

_UNPUBLISHED = text("""
    SELECT id, environment FROM checks
    WHERE status = 'queued' AND published_at IS NULL AND (CAST(:run AS text) IS NULL OR run_id = :run)
    ORDER BY id LIMIT :most FOR UPDATE SKIP LOCKED
""")

_PUBLISHED = text("UPDATE checks SET published_at = now() WHERE id = ANY(:ids)")

_UNPUBLISH = text("""
    UPDATE checks SET published_at = NULL
    WHERE status = 'queued' AND environment = ANY(:environments)
      AND published_at < now() - :age * interval '1 second'
""")

_EXPORTING = text("""
    UPDATE manifests SET next_sha256 = :sha256, next_size = :size WHERE run_id = :run_id AND number = :number
""")

_EXPORTED = text("""
    UPDATE manifests SET sha256 = next_sha256, size = next_size, next_sha256 = NULL, next_size = NULL
    WHERE run_id = :run_id AND number = :number AND next_sha256 IS NOT NULL
""")


class Store:
    """The farm's state in PostgreSQL.

    Every method raises `ServerDown` when PostgreSQL cannot be reached; the change was then made whole or not
    at all, and calling again is safe.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Commit what is done inside the block, all or nothing."""
        with reaching(self.engine), self.engine.begin() as connection:
            yield connection

    def register(self, served: Iterable[Served]) -> None:
        """Say which environments a worker serves, now."""
        rows = [asdict(environment) for environment in served]
        if rows:
            with self.transaction() as connection:
                connection.execute(_REGISTER, rows)

    def claim(
        self, check_id: int, *, worker: str, served: Sequence[str], lease_seconds: float
    ) -> Claim | None:
        """Take a queued check for this worker; None when there is nothing to take under this id."""
        values = {"id": check_id, "worker": worker, "served": list(served), "lease": lease_seconds}
        with self.transaction() as connection:
            row = connection.execute(_CLAIM, values).mappings().one_or_none()
        return None if row is None else _claim(row)

    def extend(self, held: Mapping[int, int], *, lease_seconds: float) -> frozenset[int]:
        """Extend the leases of held checks (id to attempt) and return the ids that are no longer held."""
        if not held:
            return frozenset()
        values = {"ids": list(held), "attempts": list(held.values()), "lease": lease_seconds}
        with self.transaction() as connection:
            kept = connection.scalars(_EXTEND, values).all()
        return frozenset(held) - frozenset(kept)

    def finish(self, claim: Claim, decision: Decision) -> bool:
        """Record a verdict; False when the attempt is no longer this worker's, and then nothing changed."""
        return self._changed(_FINISH, _finished(claim, decision))

    def give_back(self, claim: Claim, *, outcome: str, detail: str) -> bool:
        """Queue a held check again, saying what became of this attempt; False when it was not held."""
        values = {
            "id": claim.check_id,
            "attempt": claim.attempt,
            "outcome": outcome,
            "detail": storable(detail),
        }
        return self._changed(_GIVE_BACK, values)

    def take_back(self, *, checker_version: str) -> int:
        """Queue again what dead workers held, end what has used up its attempts, and return how many."""
        with self.transaction() as connection:
            values = {"most": MAX_ATTEMPTS, "checker_version": checker_version}
            return int(connection.scalar(_TAKE_BACK, values) or 0)

    @contextmanager
    def outbox(self, *, run_id: str | None = None, most: int = 1000) -> Iterator[list[tuple[int, str]]]:
        """Hold up to `most` committed and unsent checks, as (id, environment), and mark them sent at the end.

        Nobody else gets the same rows meanwhile. When the block fails nothing is marked, and they are sent
        again: a message too many is harmless, a message too few is not.
        """
        with self.transaction() as connection:
            rows = [
                (id_, environment)
                for id_, environment in connection.execute(_UNPUBLISHED, {"run": run_id, "most": most})
            ]
            yield rows
            connection.execute(_PUBLISHED, {"ids": [id_ for id_, _ in rows]})

    def unpublish(self, environments: Sequence[str], *, older_than_seconds: float) -> None:
        """Mark queued checks of these environments as unsent when they were sent so long ago."""
        if environments:
            with self.transaction() as connection:
                connection.execute(
                    _UNPUBLISH, {"environments": list(environments), "age": older_than_seconds}
                )

    def exporting(self, run_id: str, number: int, *, sha256: str, size: int) -> None:
        """Remember the bytes that a manifest is about to have, so that the farm knows its own work again."""
        with self.transaction() as connection:
            connection.execute(
                _EXPORTING, {"run_id": run_id, "number": number, "sha256": sha256, "size": size}
            )

    def exported(self, run_id: str, number: int) -> None:
        """Remember that the manifest has those bytes now."""
        with self.transaction() as connection:
            connection.execute(_EXPORTED, {"run_id": run_id, "number": number})

    def _changed(self, statement: TextClause, values: Mapping[str, object]) -> bool:
        with self.transaction() as connection:
            return connection.execute(statement, values).first() is not None


def storable(words: str) -> str:
    """Return the words without what PostgreSQL's text cannot hold: NUL and lone surrogates."""
    return words.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _claim(values: RowMapping) -> Claim:
    return Claim(
        check_id=values["id"],
        attempt=values["attempt"],
        run_id=values["run_id"],
        environment=values["environment"],
        check=Check(
            program=bytes(values["source"]).decode("utf-8", "surrogatepass"),
            limits=Limits(
                wall_seconds=values["wall_seconds"],
                cpu_seconds=values["cpu_seconds"],
                memory_mib=values["memory_mib"],
            ),
            submitted=tuple((start, end) for start, end in values["submitted"]),
            challenge=None if values["challenge"] is None else _challenge(values),
            assurance=Assurance(
                tier=values["tier"],
                confirm=values["confirm"],
                policy=Policy(actions={rule: Action(word) for rule, word in values["policy"].items()}),
                axioms=tuple(values["axioms"]),
            ),
        ),
    )


def _challenge(values: RowMapping) -> Challenge:
    program = bytes(values["challenge"]).decode("utf-8", "surrogatepass")
    return Challenge(program=program, name=values["challenge_name"])


def _message(message: Message) -> dict[str, object]:
    return asdict(message) | {"text": storable(message.text), "kind": storable(message.kind)}


def _finished(claim: Claim, decision: Decision) -> dict[str, object]:
    report, verdict = decision.report, decision.verdict
    return {
        "id": claim.check_id,
        "attempt": claim.attempt,
        "verdict": verdict.outcome,
        "reason": verdict.reason,
        "detail": storable(verdict.detail),
        "messages": json.dumps([_message(message) for message in report.messages]),
        "hits": json.dumps([asdict(hit) | {"text": storable(hit.text)} for hit in report.hits]),
        # A compiled module can name its constants as it likes; PostgreSQL's JSON has no NUL.
        "audit": None if report.audit is None else json.dumps(report.audit).replace("\\u0000", "\\ufffd"),
        "accepted_first": report.accepted_first,
        "wall_seconds": report.wall_seconds,
        "cpu_seconds": report.cpu_seconds,
        "peak_memory_kib": report.peak_memory_kib,
        "isolation": report.isolation,
        "digest": decision.digest,
        "toolchain": decision.toolchain,
        "checker_version": decision.checker_version,
    }
