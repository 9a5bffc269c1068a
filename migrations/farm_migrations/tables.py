"""Declares the tables that the revisions make, with the constraints by which PostgreSQL guards them.

    environments   the environments that workers serve, or that are declared in advance, by name
    workers        the heartbeat of each worker
    runs           one `farm submit`, or one batch of the HTTP service
    manifests      the files of a run: path, size and digest
    programs       exact program texts, by sha256: submissions and challenges
    checks         units of work: a program under an environment and limits; also the queue
    jobs           one manifest line or batch item of a run, with its check, which other jobs may share
    item_keys      the client's key of a batch item, so that a repeated request returns the same item
    attempts       the attempts of workers at a check, each recorded when it ends
    verdicts       the verdict of each check; inserted once, and changed only by contradictions
    sentences      what the theorems of proofs and disproofs state, by which contradictions are found
    api_keys       the keys of the HTTP service, with scopes and limits
    key_uses       the use of each limited key: its bucket, and the lock of its submits
    unfinished     the unfinished proofs of keys that have a limit of them
    tallies        counts of attempts by outcome, and of submitted lines; a count is the sum of its rows
    compatibility  the oldest revision whose farms may use these tables
    sweeping       one row, which a sweep locks, so that there is one at a time
    submitting     a lock for each list of manifests during its submit; no row is ever committed
    pruned_runs    deleted runs whose lines are not all deleted yet

Every constraint has a name, by which the store tells the errors of PostgreSQL apart.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from farm.judging.audit import COMPARED, UNCHECKED
from farm.judging.report import Preamble
from farm.judging.states import CancelReason, Priority, Status
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome
from farm.store.keys import Scope
from farm.store.workers import State

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)


def _one_of(column: str, words: Iterable[str]) -> CheckConstraint:
    listed = ", ".join(f"'{word}'" for word in words)
    return CheckConstraint(text(f"{column} IN ({listed})"), name=f"{column}_known")


def _some_of(column: str, words: Iterable[str]) -> CheckConstraint:
    listed = ", ".join(f"'{word}'" for word in words)
    some = f"cardinality({column}) > 0 AND {column} <@ ARRAY[{listed}]"
    return CheckConstraint(text(some), name=f"{column}_known")


environments = Table(
    "environments",
    metadata,
    Column("name", Text, primary_key=True),
    # The proof system: `farm.kinds.Kind`. No constraint lists them: a newer farm may add another one.
    Column("kind", Text, nullable=False, server_default="lean"),
    Column("digest", Text, nullable=False),
    Column("toolchain", Text, nullable=False),
    # The second checker, such as one that replays compiled modules; null without one.
    Column("checker", Text),
    # The tiers that its workers can judge.
    Column("tiers", ARRAY(Text), nullable=False),
    # The version of the farm whose workers serve it.
    Column("checker_version", Text, nullable=False, server_default=""),
    # Updated by the heartbeat of every worker that serves it; null if it is only declared.
    Column("seen_at", DateTime(timezone=True)),
)

workers = Table(
    "workers",
    metadata,
    # Made of the node and the process; `checks.worker` refers to it.
    Column("name", Text, primary_key=True),
    # The start of its process, which differs between two workers with the same name.
    Column("since", DateTime(timezone=True), primary_key=True),
    Column("node", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    # The environments that it serves: an array of objects with name, toolchain, digest and tiers.
    Column("environments", JSONB, nullable=False),
    Column("isolation", Text, nullable=False),
    Column("farm_version", Text, nullable=False),
    # The number of its worker slots, and of those occupied at the heartbeat.
    Column("threads", Integer, nullable=False),
    Column("busy", Integer, nullable=False),
    Column("state", Text, nullable=False),
    # Other workers take its checks after this many seconds without a heartbeat.
    Column("lease_seconds", Double, nullable=False),
    Column("seen_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # The environments that it is configured with and does not serve: an array of
    # `farm.store.environments.Pending`.
    Column("pending", JSONB, nullable=False, server_default=text("'[]'")),
    _one_of("state", State),
    postgresql_with={"fillfactor": 50},
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("options", JSONB, nullable=False),
    Column("farm_version", Text, nullable=False),
    # The API key that submitted a batch, "local" without a key; null for runs of `farm submit`.
    Column("owner", Text),
    # Checks that have not begun at this time are cancelled.
    Column("deadline_at", DateTime(timezone=True)),
    # A submit does not resume a run that a user cancelled.
    Column("cancelled_at", DateTime(timezone=True)),
    # The login that stored it, and the number of that transaction; null in runs of earlier releases.
    Column("submitted_by", Text, server_default=text("session_user::text")),
    Column("stored_by", BigInteger, server_default=text("pg_current_xact_id()::text::bigint")),
    Index("runs_deadline_at_idx", "deadline_at", postgresql_where=text("deadline_at IS NOT NULL")),
    # Runs of manifests alone, because there may be millions of batches.
    Index(None, "created_at", postgresql_where=text("owner IS NULL")),
    Index("runs_batches_idx", "created_at", postgresql_where=text("owner IS NOT NULL")),
    # The few batches that refer to items of other batches, by those batches.
    Index(
        "runs_places_idx",
        text("(options -> 'places')"),
        postgresql_using="gin",
        postgresql_where=text("options ? 'places'"),
    ),
)

manifests = Table(
    "manifests",
    metadata,
    Column("run_id", Text, ForeignKey(runs.c.id, ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("path", Text, nullable=False),
    # The file's digest when this run last read or wrote it: an export overwrites no other content.
    Column("sha256", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    # The digest of the file that an export is about to write, so that an interrupted export can be repeated.
    Column("next_sha256", Text),
    Column("next_size", BigInteger),
    # The start of the newest export into the file; null before the first.
    Column("exported_at", DateTime(timezone=True)),
    Index("manifests_path_idx", "path", postgresql_using="hash"),
)

# Not unique: two runs that are loaded at once may insert the same text, and neither waits for the other.
programs = Table(
    "programs",
    metadata,
    Column("sha256", LargeBinary, nullable=False),
    # UTF-8 bytes, because a submission may hold NUL or lone surrogates, which PostgreSQL's `text` cannot.
    Column("source", LargeBinary, nullable=False),
    CheckConstraint("sha256 = sha256(source)", name="sha256_true"),
    Index(None, "sha256"),
)

checks = Table(
    "checks",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("program_sha256", LargeBinary, nullable=False),
    # [start, end] of each span of the program that is the submission's own, which the policy screens.
    Column("submitted", JSON, nullable=False),
    # The same of the program that is tried last, and of the one before that; null without one.
    Column("fallback_sha256", LargeBinary),
    Column("fallback_submitted", JSON),
    Column("restated_sha256", LargeBinary),
    Column("restated_submitted", JSON),
    Column("challenge_sha256", LargeBinary),
    Column("challenge_name", Text),
    # The offset at which the dataset's context in the program ends; 0 without a context.
    Column("context_end", Integer, nullable=False, server_default=text("0")),
    # A number that checks of one image share; 0 if the image is not known.
    Column("image", BigInteger, nullable=False, server_default=text("0")),
    # The proof system that the programs were assembled for; null for checks of releases before 0028.
    Column("kind", Text),
    # No foreign key: each insert would lock the environment's row, which all heartbeats update.
    Column("environment", Text, nullable=False),
    Column("tier", Text, nullable=False),
    # Whether a proof may rest on the compiler.
    Column("native", Boolean, nullable=False),
    # The axioms that a proof may rest on.
    Column("axioms", JSONB, nullable=False),
    # The actions of the policy's rules that the submitter has set.
    Column("policy", JSONB, nullable=False),
    Column("wall_seconds", Double, nullable=False),
    Column("cpu_seconds", Double, nullable=False),
    Column("memory_mib", Integer, nullable=False),
    # Whether the verdict lists the goals at errors and sorries.
    Column("goals", Boolean, nullable=False, server_default=text("false")),
    # Whether Lean is ended at the first error that decides.
    Column("stop_at_error", Boolean, nullable=False, server_default=text("false")),
    # The JSON of `farm.task.Task`: what the proof has to show beyond the usual; null for nothing.
    Column("task", Text),
    # The cache key by which equal checks are shared; null for a check that is not, or no longer, shared.
    Column("identity", LargeBinary),
    # The judge that the identity assumes: a verdict of another digest or version is not shared.
    Column("environment_digest", Text, nullable=False),
    Column("checker_version", Text, nullable=False),
    # Its place in the queue: the class (0 first), then the turn, by which the runs of a tenant alternate.
    Column("priority", SmallInteger, nullable=False),
    Column("turn", BigInteger, nullable=False),
    # Which of the class's tenants it is of, and how many checks that one gets where another gets one; 0 in
    # checks of releases that knew no tenants.
    Column("tenant", BigInteger, nullable=False, server_default=text("0")),
    Column("weight", SmallInteger, nullable=False, server_default=text("1")),
    Column("status", Text, nullable=False),
    # The time since which a job waits for it.
    Column("queued_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # The number of the newest attempt, 0 before the first: a worker may finish only the attempt it leases.
    Column("attempt", Integer, nullable=False, server_default="0"),
    # The attempts that the farm failed: they lost their worker, or ended as `judge_error`.
    Column("failures", SmallInteger, nullable=False, server_default="0"),
    # The worker and the start of the newest attempt.
    Column("worker", Text),
    Column("started_at", DateTime(timezone=True)),
    # Whether that attempt is prefetched: claimed before a worker slot was free, and not reported as begun.
    Column("ahead", Boolean, nullable=False, server_default=text("false")),
    Column("lease_until", DateTime(timezone=True)),
    _one_of("status", Status),
    _one_of("tier", Tier),
    CheckConstraint("(fallback_sha256 IS NULL) = (fallback_submitted IS NULL)", name="fallback_whole"),
    CheckConstraint("(restated_sha256 IS NULL) = (restated_submitted IS NULL)", name="restated_whole"),
    CheckConstraint("(status = 'running') = (lease_until IS NOT NULL)", name="lease_while_running"),
    CheckConstraint("wall_seconds > 0 AND cpu_seconds > 0 AND memory_mib > 0", name="limits_positive"),
    Index(
        "checks_tenants_idx",
        *("environment", "priority", "tenant", "turn", "id"),
        postgresql_where=text("status = 'queued'"),
    ),
    Index(
        "checks_tenant_images_idx",
        *("environment", "priority", "image", "tenant", "turn", "id"),
        postgresql_where=text("status = 'queued' AND image <> 0"),
    ),
    # Looks for a class with work; and the claims of releases that knew no tenants, as the next index.
    Index(
        "checks_queue_idx",
        *("environment", "priority", "turn", "id"),
        postgresql_where=text("status = 'queued'"),
    ),
    Index(
        "checks_images_idx",
        *("environment", "priority", "image", "turn", "id"),
        postgresql_where=text("status = 'queued' AND image <> 0"),
    ),
    Index("checks_identity_idx", "identity", unique=True, postgresql_where=text("identity IS NOT NULL")),
    # Not WHERE status = 'running': queries for a running check by its id must use the primary key.
    Index("checks_lease_until_idx", "lease_until", postgresql_where=text("lease_until IS NOT NULL")),
    Index("checks_cancelled_idx", "id", postgresql_where=text("status = 'cancelled'")),
    # Pruning looks up for each text whether a check still refers to it.
    Index(None, "program_sha256"),
    Index(None, "fallback_sha256", postgresql_where=text("fallback_sha256 IS NOT NULL")),
    Index(None, "restated_sha256", postgresql_where=text("restated_sha256 IS NOT NULL")),
    Index(None, "challenge_sha256", postgresql_where=text("challenge_sha256 IS NOT NULL")),
)

jobs = Table(
    "jobs",
    metadata,
    # No foreign key: the lines of a deleted run are deleted later, in batches (`pruned_runs`).
    Column("run_id", Text, primary_key=True),
    # The items of a batch, which has no manifests, are lines of manifest 0.
    Column("manifest", Integer, primary_key=True),
    Column("line", Integer, primary_key=True),
    # Deferred to the commit: jobs are loaded before the checks of their run are made, so that checks are
    # locked in one order. The key also prevents the deletion of a check that a job waits for.
    Column(
        "check_id",
        BigInteger,
        ForeignKey(checks.c.id, deferrable=True, initially="DEFERRED"),
        nullable=False,
    ),
    Column("name", Text, nullable=False),
    Column("group_name", Text),
    # Whether the first proof in its group cancels the other jobs of the group.
    Column("races", Boolean, nullable=False, server_default=text("false")),
    # Whether another job, of this run or of another, had brought the check already.
    Column("shared", Boolean, nullable=False, server_default=text("false")),
    # The reason why the job was cancelled, in a word; null if it was not.
    Column("cancelled", Text),
    # [start, length, origin, origin_start] of each verbatim piece: maps Lean's positions back to the answer.
    # An item's fields are not stored, so its pieces have their line and column in the field as well.
    Column("segments", JSON, nullable=False),
    # Those of the program that is tried last, and of the one before that; null without one.
    Column("fallback_segments", JSON),
    Column("restated_segments", JSON),
    Column("warnings", JSON, nullable=False),
    _one_of("cancelled", CancelReason),
    Index(None, "check_id"),
    # The only index for a run's group: with `run_id` as a column, a query could scan the whole run instead.
    Index(
        "jobs_group_idx",
        text("hashtextextended(run_id || coalesce(group_name, name), 0)"),
        postgresql_where=text("races"),
    ),
)

item_keys = Table(
    "item_keys",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    # The digest of the request with this key: another request with the same key is an error.
    Column("request_sha256", LargeBinary, nullable=False),
    Column("run_id", Text, ForeignKey(runs.c.id, ondelete="CASCADE"), nullable=False),
    Column("line", Integer, nullable=False),
    Index(None, "run_id"),
)

# In attempts and verdicts `check_id` is no foreign key: the statement that changes or deletes a check also
# inserts or deletes these rows.
attempts = Table(
    "attempts",
    metadata,
    Column("check_id", BigInteger, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("worker", Text, nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False),
    Column("ended_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # The verdict's word, or the reason for none: `judge_error` (retried), `lost` (its lease expired),
    # `returned` (its worker gave it back without a failure) or `cancelled`.
    Column("outcome", Text, nullable=False),
    Column("detail", Text, nullable=False),
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("check_id", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("messages", JSONB, nullable=False),
    # The policy's hits in the submission's own spans, and the audit of its compiled module.
    Column("hits", JSONB, nullable=False),
    Column("audit", JSONB),
    # The goals at errors and sorries; null if they were not requested, or could not be computed.
    Column("goals", JSONB),
    # Whether the proved theorem was compared with the line's statement; the trusted parts beside the kernel.
    Column("statement", Text),
    Column("trusts", ARRAY(Text), nullable=False, server_default="{}"),
    # The check's program that got this verdict; null if the check has only one.
    Column("preamble", Text),
    Column("wall_seconds", Double, nullable=False),
    Column("cpu_seconds", Double, nullable=False),
    Column("peak_memory_kib", BigInteger, nullable=False),
    Column("isolation", Text, nullable=False),
    Column("environment_digest", Text, nullable=False),
    Column("toolchain", Text, nullable=False),
    Column("checker_version", Text, nullable=False),
    Column("decided_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # The trace of the check, as 32 hexadecimal digits; null without tracing.
    Column("trace_id", Text),
    # The document of `farm.judging.verdict.Particulars`: fields that SQL neither filters nor sums. Null in
    # verdicts of earlier releases.
    Column("facts", JSONB),
    # Whether another key's line proved the contrary: both verdicts stay what they are.
    Column("contested", Boolean, nullable=False, server_default=text("false")),
    _one_of("verdict", Outcome),
    _one_of("statement", (COMPARED, UNCHECKED)),
    _one_of("preamble", Preamble),
    # Counts of verdicts read this index alone, because the rows are wide.
    PrimaryKeyConstraint(
        "check_id", name="verdicts_pkey", postgresql_include=["verdict", "reason", "statement", "trusts"]
    ),
    Index(None, "decided_at"),
)

# One row for each proof or disproof that a seal has compared with its statement.
sentences = Table(
    "sentences",
    metadata,
    Column("check_id", BigInteger, primary_key=True, autoincrement=False),
    # The digest of the statement without negations at its front, and of the environment; and whether their
    # number is odd.
    Column("key", LargeBinary, nullable=False),
    Column("negated", Boolean, nullable=False),
    # The axioms that the proof rests on, and those that it might have rested on.
    Column("uses", ARRAY(Text), nullable=False),
    Column("allows", ARRAY(Text), nullable=False),
    Index(None, "key", "negated"),
)

api_keys = Table(
    "api_keys",
    metadata,
    # The public part of the key's token.
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    # The digest of the token's secret part, which is stored nowhere.
    Column("secret_sha256", LargeBinary, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    # The priority classes that the key may submit in.
    Column("classes", ARRAY(Text), nullable=False),
    # The most proofs that it may submit per second, and have unfinished at once; null for no limit.
    Column("per_second", Double),
    Column("in_flight", Integer),
    # The most seconds of one of its checks; null if the service's own limit applies.
    Column("most_seconds", Double),
    # How many checks it gets where another key gets one.
    Column("weight", SmallInteger, nullable=False, server_default=text("1")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("revoked_at", DateTime(timezone=True)),
    CheckConstraint("octet_length(secret_sha256) = 32", name="secret_sha256_whole"),
    _some_of("scopes", Scope),
    _some_of("classes", (each.name.lower() for each in Priority)),
    # To PostgreSQL NaN and infinity are above 0, and NaN is above infinity.
    CheckConstraint(
        "per_second > 0 AND per_second < 'Infinity' AND in_flight > 0",
        name="limits_positive",
    ),
    CheckConstraint("most_seconds > 0 AND most_seconds <= 86400", name="most_seconds_possible"),
    CheckConstraint("weight BETWEEN 1 AND 100", name="weight_possible"),
    Index("api_keys_name_idx", "name", unique=True, postgresql_where=text("revoked_at IS NULL")),
)

key_uses = Table(
    "key_uses",
    metadata,
    # A key with a limit; who locks its row submits for it alone.
    Column("key_id", Text, primary_key=True),
    # The proofs that its bucket for `per_second` held at this time.
    Column("level", Double, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
    # Until then its unfinished proofs are not counted again.
    Column("full_until", DateTime(timezone=True)),
)

unfinished = Table(
    "unfinished",
    metadata,
    # A batch of a key with a limit of unfinished proofs, or a step of a session.
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    # Its unfinished proofs when they were counted last.
    Column("proofs", Integer, nullable=False),
    # A step whose service renews it no more ends then; null for a batch.
    Column("expires_at", DateTime(timezone=True)),
    Index(None, "owner"),
)

# Metrics read this table at every scrape, because the attempts and jobs are too many to count. Each
# transaction inserts its own row, so none waits for a lock; sweeps merge the rows (`farm.store.tallies`).
tallies = Table(
    "tallies",
    metadata,
    # `attempts`, by outcome, or `lines`, which are `own` or `shared`.
    Column("subject", Text, nullable=False),
    Column("word", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
)

Table("submitting", metadata, Column("paths_sha256", LargeBinary, primary_key=True))

# One row, which a sweep locks.
Table(
    "sweeping",
    metadata,
    Column("one", Boolean, primary_key=True, server_default=text("true")),
    CheckConstraint("one", name="one_row"),
)

Table("pruned_runs", metadata, Column("run_id", Text, primary_key=True))

# One row: the oldest revision that a farm must know to use these tables.
Table("compatibility", metadata, Column("oldest", Text, nullable=False))
