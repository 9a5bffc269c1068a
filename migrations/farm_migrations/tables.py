"""The tables that the revisions make: what PostgreSQL keeps, and the rules it keeps by itself.

    environments   what workers serve, or are to serve, by name
    workers        who checks: each worker says every few seconds that it lives
    runs           one `farm submit`, or one batch that the service took
    manifests      the files of a run, as they were read
    programs       exact Lean texts, by sha256: what is checked, and challenges
    checks         units of work: a program under an environment and limits; also the queue
    jobs           one manifest line or item of a run, waiting for its check, which others may wait for, too
    item_keys      by which name a client knows an item of a batch, so that it can ask for it twice
    attempts       every time that a worker took a check, once it ended
    verdicts       what a check's proof is worth; written once, never changed
    api_keys       who may use the HTTP service, and for what
    tallies        how many attempts ended how, and how many lines were submitted; the sum of its rows counts
    compatibility  which farms may use these tables
    submitting     a lock for each list of manifests that is being submitted; no committed row stands there
    pruned_runs    runs that were deleted, and of whose lines some are still to be deleted

Constraints have names, so that errors can be told apart by name.
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
from farm.judging.states import Cancelled, Priority, Status
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
    # The proof system: `farm.kinds.Kind`. What a newer farm knows besides must not stop an older one.
    Column("kind", Text, nullable=False, server_default="lean"),
    Column("digest", Text, nullable=False),
    Column("toolchain", Text, nullable=False),
    # What replays a compiled module through the kernel there; null where nothing does.
    Column("checker", Text),
    # The tiers that can be had there.
    Column("tiers", ARRAY(Text), nullable=False),
    # The version of the farm whose workers serve it.
    Column("checker_version", Text, nullable=False, server_default=""),
    # Kept fresh by the heartbeat of every worker that serves it; null where it is only declared.
    Column("seen_at", DateTime(timezone=True)),
)

workers = Table(
    "workers",
    metadata,
    # Of the node and the process; the checks that it has name it, too.
    Column("name", Text, primary_key=True),
    # When its process began: of two that have the same name one was begun earlier.
    Column("since", DateTime(timezone=True), primary_key=True),
    Column("node", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    # Those that it serves: an array of objects with name, toolchain, digest and tiers.
    Column("environments", JSONB, nullable=False),
    Column("isolation", Text, nullable=False),
    Column("farm_version", Text, nullable=False),
    # How many checks it may carry out at once, and how many threads were at work when it spoke.
    Column("threads", Integer, nullable=False),
    Column("busy", Integer, nullable=False),
    Column("state", Text, nullable=False),
    # After so many seconds of silence others take its checks.
    Column("lease_seconds", Double, nullable=False),
    Column("seen_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # Those that it has a table of and does not serve: an array of `farm.store.environments.Pending`.
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
    # Of a batch, the API key that brought it; "local" for who needs none, null for what `farm submit` stored.
    Column("owner", Text),
    # What has not begun by then is cancelled.
    Column("deadline_at", DateTime(timezone=True)),
    # A run that somebody cancelled is not resumed by a submit.
    Column("cancelled_at", DateTime(timezone=True)),
    Index("runs_deadline_at_idx", "deadline_at", postgresql_where=text("deadline_at IS NOT NULL")),
    # Runs of manifests: there may be millions of batches.
    Index(None, "created_at", postgresql_where=text("owner IS NULL")),
    Index("runs_batches_idx", "created_at", postgresql_where=text("owner IS NOT NULL")),
    # The few batches that have items of others, by those others.
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
    # The file's bytes as this run last read or wrote them: what an export may write over.
    Column("sha256", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    # The bytes that an export is about to put in its place: one that died there can be repeated.
    Column("next_sha256", Text),
    Column("next_size", BigInteger),
    # When the newest export into it began; null where there was none.
    Column("exported_at", DateTime(timezone=True)),
    Index("manifests_path_idx", "path", postgresql_using="hash"),
)

# Not unique: of two runs that are loaded at once each may bring the same text, and neither waits.
programs = Table(
    "programs",
    metadata,
    Column("sha256", LargeBinary, nullable=False),
    # UTF-8 bytes and not text: a generation may hold NUL or lone surrogates, which PostgreSQL's text cannot.
    Column("source", LargeBinary, nullable=False),
    CheckConstraint("sha256 = sha256(source)", name="sha256_true"),
    Index(None, "sha256"),
)

checks = Table(
    "checks",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("program_sha256", LargeBinary, nullable=False),
    # [start, end] of each span of the program that is the submission's own: what the policy looks at.
    Column("submitted", JSON, nullable=False),
    # The same of the program that is tried last, and of the one before that; null where there is none.
    Column("fallback_sha256", LargeBinary),
    Column("fallback_submitted", JSON),
    Column("restated_sha256", LargeBinary),
    Column("restated_submitted", JSON),
    Column("challenge_sha256", LargeBinary),
    Column("challenge_name", Text),
    # How far the program's context reaches, which the dataset brought: 0 where there is none.
    Column("context_end", Integer, nullable=False, server_default=text("0")),
    # Checks that can be forked from one image have this number in common; 0 where nobody knows.
    Column("image", BigInteger, nullable=False, server_default=text("0")),
    # Not a foreign key: each new check would look up, and lock, the row that all heartbeats write to.
    Column("environment", Text, nullable=False),
    Column("tier", Text, nullable=False),
    # Whether a proof may rest on the compiler.
    Column("native", Boolean, nullable=False),
    # The axioms that a proof may rest on.
    Column("axioms", JSONB, nullable=False),
    # The actions of the policy's rules that somebody has set.
    Column("policy", JSONB, nullable=False),
    Column("wall_seconds", Double, nullable=False),
    Column("cpu_seconds", Double, nullable=False),
    Column("memory_mib", Integer, nullable=False),
    # Whether the goals at errors and sorries are told.
    Column("goals", Boolean, nullable=False, server_default=text("false")),
    # What equal checks have in common; null for what is not shared, or no longer.
    Column("identity", LargeBinary),
    # With what it was to be judged, so far as the identity says: a verdict of anything else is not shared.
    Column("environment_digest", Text, nullable=False),
    Column("checker_version", Text, nullable=False),
    # Its place in the queue: the class (0 first), then the turn, in which runs of a class alternate.
    Column("priority", SmallInteger, nullable=False),
    Column("turn", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    # Since when anybody waits for it.
    Column("queued_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # The number of the newest attempt, 0 before the first: a worker may only finish the attempt it holds.
    Column("attempt", Integer, nullable=False, server_default="0"),
    # How many attempts the farm failed at: they lost their worker, or ended as `judge_error`.
    Column("failures", SmallInteger, nullable=False, server_default="0"),
    # Of the newest attempt.
    Column("worker", Text),
    Column("started_at", DateTime(timezone=True)),
    # Whether that attempt was claimed before a thread was free for it, and has not begun as far as is known.
    Column("ahead", Boolean, nullable=False, server_default=text("false")),
    Column("lease_until", DateTime(timezone=True)),
    _one_of("status", Status),
    _one_of("tier", Tier),
    CheckConstraint("(fallback_sha256 IS NULL) = (fallback_submitted IS NULL)", name="fallback_whole"),
    CheckConstraint("(restated_sha256 IS NULL) = (restated_submitted IS NULL)", name="restated_whole"),
    CheckConstraint("(status = 'running') = (lease_until IS NOT NULL)", name="lease_while_running"),
    CheckConstraint("wall_seconds > 0 AND cpu_seconds > 0 AND memory_mib > 0", name="limits_positive"),
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
    # Not WHERE status = 'running': a check that is looked up by its id, if it runs, is to be found by its id.
    Index("checks_lease_until_idx", "lease_until", postgresql_where=text("lease_until IS NOT NULL")),
    Index("checks_cancelled_idx", "id", postgresql_where=text("status = 'cancelled'")),
    # Who prunes asks of each text whether a check still refers to it.
    Index(None, "program_sha256"),
    Index(None, "fallback_sha256", postgresql_where=text("fallback_sha256 IS NOT NULL")),
    Index(None, "restated_sha256", postgresql_where=text("restated_sha256 IS NOT NULL")),
    Index(None, "challenge_sha256", postgresql_where=text("challenge_sha256 IS NOT NULL")),
)

jobs = Table(
    "jobs",
    metadata,
    # Of a run that was deleted its lines go later, bit by bit: see `pruned_runs`.
    Column("run_id", Text, primary_key=True),
    # A batch has no manifests: its items are lines of manifest 0.
    Column("manifest", Integer, primary_key=True),
    Column("line", Integer, primary_key=True),
    # Looked up at the commit: jobs are loaded before the checks of their run are made, and nobody's checks
    # are locked out of order. A check that a line waits for cannot be deleted.
    Column(
        "check_id",
        BigInteger,
        ForeignKey(checks.c.id, deferrable=True, initially="DEFERRED"),
        nullable=False,
    ),
    Column("name", Text, nullable=False),
    Column("group_name", Text),
    # Whether its group has won when one of it is proved: the others are cancelled then.
    Column("races", Boolean, nullable=False, server_default=text("false")),
    # Whether its check was there already, for another line of this run or of another.
    Column("shared", Boolean, nullable=False, server_default=text("false")),
    # Why nobody waits for it any more, in a word; null while somebody does.
    Column("cancelled", Text),
    # [start, length, origin, origin_start] of each verbatim piece: maps Lean's positions back to the answer.
    # Of an item, whose fields are not kept, also the piece's line and column in its field.
    Column("segments", JSON, nullable=False),
    # Those of the program that is tried last, and of the one before that; null where there is none.
    Column("fallback_segments", JSON),
    Column("restated_segments", JSON),
    Column("warnings", JSON, nullable=False),
    _one_of("cancelled", Cancelled),
    Index(None, "check_id"),
    # The one way to a run's group: a `run_id` of its own would lead through the whole run as well.
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
    # Of what was asked for under this key: the same key with anything else is a mistake.
    Column("request_sha256", LargeBinary, nullable=False),
    Column("run_id", Text, ForeignKey(runs.c.id, ondelete="CASCADE"), nullable=False),
    Column("line", Integer, nullable=False),
    Index(None, "run_id"),
)

# Of attempts and verdicts `check_id` is no foreign key: both are made, and deleted, by the statement that
# changes or deletes their check.
attempts = Table(
    "attempts",
    metadata,
    Column("check_id", BigInteger, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("worker", Text, nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False),
    Column("ended_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # The verdict's word, or why there was none: `judge_error` (tried again), `lost` (its lease ran out),
    # `returned` (its worker gave it back unharmed) or `cancelled`.
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
    # What the policy found in the submission's own part, and the audit in its compiled module.
    Column("hits", JSONB, nullable=False),
    Column("audit", JSONB),
    # What was to be proved at errors and sorries; null where nobody asked, or it could not be had.
    Column("goals", JSONB),
    # Whether what was proved was compared with the line's statement, and what it rests on beside the kernel.
    Column("statement", Text),
    Column("trusts", ARRAY(Text), nullable=False, server_default="{}"),
    # Which of the check's programs this is about; null where there is but one.
    Column("preamble", Text),
    Column("wall_seconds", Double, nullable=False),
    Column("cpu_seconds", Double, nullable=False),
    Column("peak_memory_kib", BigInteger, nullable=False),
    Column("isolation", Text, nullable=False),
    Column("environment_digest", Text, nullable=False),
    Column("toolchain", Text, nullable=False),
    Column("checker_version", Text, nullable=False),
    Column("decided_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # Of the trace in which it was made, in 32 hexadecimal digits; null where nothing was traced.
    Column("trace_id", Text),
    # The document of `farm.judging.verdict.Particulars`: fields that SQL neither filters nor sums. Null in
    # verdicts of releases before it.
    Column("facts", JSONB),
    _one_of("verdict", Outcome),
    _one_of("statement", (COMPARED, UNCHECKED)),
    _one_of("preamble", Preamble),
    # What a tally asks for is read from the index alone: the rows are wide.
    PrimaryKeyConstraint(
        "check_id", name="verdicts_pkey", postgresql_include=["verdict", "reason", "statement", "trusts"]
    ),
    Index(None, "decided_at"),
)

api_keys = Table(
    "api_keys",
    metadata,
    # Part of the key's token, and not secret.
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    # Of the rest of the token, which is stored nowhere.
    Column("secret_sha256", LargeBinary, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    # The priority classes that the key may submit in.
    Column("classes", ARRAY(Text), nullable=False),
    # Proofs that it may submit a second, and that may be unfinished at once; null for no limit.
    Column("per_second", Double),
    Column("in_flight", Integer),
    # Seconds that one of its checks may take; null where the service's own limit holds.
    Column("most_seconds", Double),
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
    Index("api_keys_name_idx", "name", unique=True, postgresql_where=text("revoked_at IS NULL")),
)

# Metrics read this at every scrape, so it counts where the rows themselves are too many to be counted. Each
# transaction adds a row of its own, so no two wait for each other; sweeps add rows up (`farm.store.tallies`).
tallies = Table(
    "tallies",
    metadata,
    # `attempts`, by outcome, or `lines`, which are `own` or `shared`.
    Column("subject", Text, nullable=False),
    Column("word", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
)

Table("submitting", metadata, Column("paths_sha256", LargeBinary, primary_key=True))

Table("pruned_runs", metadata, Column("run_id", Text, primary_key=True))

# One row: the revision that a farm has to know at least so that it can use these tables.
Table("compatibility", metadata, Column("oldest", Text, nullable=False))
