"""Adds triggers that limit the changes of other roles than the owner; `farm.store.rights` has the grants.

A grant names tables and columns; these triggers inspect rows. A role without the right to record verdicts
changes only runs that its login submitted, and adds lines only to a run that it is storing. Only the owner
can point a stored line at a check with another question, or give a check another check's cache key: either
would put a verdict on a text that never had it. The triggers let the owner pass, and so a farm with one role.

Each function with SECURITY DEFINER does one thing that no grant can express.
"""

from __future__ import annotations

from alembic import op

revision = "0026"
down_revision = "0025"

# The defaults are set after the columns are added: else PostgreSQL would rewrite all rows. Existing rows
# belong to no login, so only workers and the owner can change them.
_TABLES = """
    ALTER TABLE runs ADD COLUMN submitted_by TEXT, ADD COLUMN stored_by BIGINT;
    ALTER TABLE runs
        ALTER COLUMN submitted_by SET DEFAULT session_user::text,
        ALTER COLUMN stored_by SET DEFAULT pg_current_xact_id()::text::bigint;
    CREATE TABLE sweeping (
        one BOOLEAN DEFAULT true NOT NULL,
        CONSTRAINT sweeping_pkey PRIMARY KEY (one),
        CONSTRAINT sweeping_one_row_check CHECK (one)
    );
    INSERT INTO sweeping DEFAULT VALUES;
"""

# Everything is looked up in the farm's own schema: a caller's temporary table must not take a table's place.
_HEAD = "SET search_path = pg_catalog, {schema}, pg_temp"

# PostgreSQL keeps a function's plans, and makes them when the tables may be small.
_LOOK_UP = "SET enable_seqscan = off SET jit = off"

# The caller may have seen an older state of the lines, so the function locks the checks first. It refuses
# isolation levels on which it could not see newer lines.
_DROP = """
    CREATE FUNCTION drop_idle_checks(ids bigint[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER {head} AS $$
    BEGIN
        IF current_setting('transaction_isolation') <> 'read committed' THEN
            RAISE EXCEPTION 'checks are dropped in transactions of the level read committed only'
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        PERFORM FROM checks WHERE id = ANY(ids) AND status IN ('queued', 'running')
            ORDER BY id FOR NO KEY UPDATE;
        WITH idle AS (
            SELECT id, status, attempt, worker, started_at FROM checks
            WHERE id = ANY(ids) AND status IN ('queued', 'running')
              AND NOT EXISTS (SELECT FROM jobs WHERE check_id = checks.id AND cancelled IS NULL)
        ), dropped AS (
            UPDATE checks SET status = 'cancelled', lease_until = NULL, identity = NULL
            FROM idle WHERE checks.id = idle.id
        ), ended AS (
            INSERT INTO attempts (check_id, number, worker, started_at, outcome, detail)
            SELECT id, attempt, worker, started_at, 'cancelled', 'nobody waits for it any more'
            FROM idle WHERE status = 'running'
            RETURNING outcome
        )
        INSERT INTO tallies SELECT 'attempts', outcome, count(*) FROM ended GROUP BY outcome;
    END
    $$;
"""

# A check that is done without an attempt lacks a verdict only while its run is being stored. It has no cache
# key, so no other line gets this verdict.
_DECIDE = """
    CREATE FUNCTION decide_by_text(
        ids bigint[], verdicts text[], reasons text[], details text[], version text
    ) RETURNS void LANGUAGE plpgsql SECURITY DEFINER {head} AS $$
    DECLARE decided bigint;
    BEGIN
        INSERT INTO verdicts (
            check_id, attempt, verdict, reason, detail, messages, hits, wall_seconds, cpu_seconds,
            peak_memory_kib, isolation, environment_digest, toolchain, checker_version)
        SELECT id, 0, said.verdict, said.reason, said.detail, '[]', '[]', 0, 0, 0, '', '', '', version
        FROM unnest(ids, verdicts, reasons, details) AS said (id, verdict, reason, detail)
        JOIN checks USING (id)
        WHERE status = 'done' AND attempt = 0 AND identity IS NULL
          AND said.verdict IN ('rejected', 'judge_error');
        GET DIAGNOSTICS decided = ROW_COUNT;
        IF decided <> cardinality(ids) THEN
            RAISE EXCEPTION 'only a check that is being stored is decided by its text, and never accepted'
                USING ERRCODE = 'insufficient_privilege';
        END IF;
    END
    $$;
"""

# A contradiction changes other verdicts by these two functions, which never make a verdict accept.
_TAKE_BACK = """
    CREATE FUNCTION take_back(ids bigint[], said text) RETURNS void
    LANGUAGE sql SECURITY DEFINER {head} AS $$
        WITH kept AS (
            UPDATE verdicts
            SET verdict = 'judge_error', reason = 'contradiction', detail = said, decided_at = now()
            WHERE check_id = ANY(ids) AND reason <> 'contradiction' RETURNING check_id
        )
        UPDATE checks SET identity = NULL FROM kept WHERE id = check_id
    $$;
    CREATE FUNCTION contest(ids bigint[]) RETURNS void
    LANGUAGE sql SECURITY DEFINER {head} AS $$
        UPDATE verdicts SET contested = true WHERE check_id = ANY(ids) AND NOT contested
    $$;
"""

# PostgreSQL counts a table's changes when their transactions end, so the caller says how many it has made.
# Another ANALYZE or VACUUM of the table is not waited for.
_STATISTICS = """
    CREATE FUNCTION renew_statistics(lines bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER {head} SET lock_timeout = '2s' AS $$
    DECLARE
        filled regclass;
    BEGIN
        FOREACH filled IN ARRAY ARRAY['{schema}.jobs', '{schema}.checks']::regclass[] LOOP
            CONTINUE WHEN lines + pg_stat_get_mod_since_analyze(filled) < 5000 + (
                SELECT greatest(reltuples, 0) / 10 FROM pg_class WHERE oid = filled);
            EXECUTE format('ANALYZE %s', filled);
        END LOOP;
    EXCEPTION WHEN lock_not_available THEN
        NULL;
    END
    $$;
"""

# PostgreSQL hides the transactions of other roles. The owner of this function sees those of the roles that
# it is a member of; a worker of yet another role may have begun long ago.
_RECORDED = """
    CREATE FUNCTION recorded_until() RETURNS timestamptz
    LANGUAGE sql SECURITY DEFINER {head} AS $$
        SELECT least(now(), min(
            CASE WHEN pg_has_role(usesysid, 'USAGE') THEN xact_start ELSE now() - interval '1 hour' END))
        FROM pg_stat_activity
        WHERE application_name = 'farm-worker' AND datname = current_database()
    $$;
"""

_IS_OWNER = "pg_has_role((SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE')"
_RECORDS = "has_table_privilege('{schema}.verdicts', 'INSERT')"
# After a restored dump, transactions may have the numbers of old ones; their times differ.
_IS_BEING_STORED = "stored_by = pg_current_xact_id()::text::bigint AND created_at = now()"

_RUNS = """
    CREATE FUNCTION guard_run() RETURNS trigger LANGUAGE plpgsql {head} AS $$
    BEGIN
        IF {is_owner} THEN
            RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
        ELSIF TG_OP = 'INSERT' THEN
            IF NEW.owner <> '' AND NOT has_table_privilege('{schema}.item_keys', 'INSERT') THEN
                RAISE EXCEPTION 'only the service stores batches of keys'
                    USING ERRCODE = 'insufficient_privilege';
            END IF;
        ELSIF TG_OP = 'DELETE' OR NEW.options::text IS DISTINCT FROM OLD.options::text THEN
            IF NOT (OLD.stored_by = pg_current_xact_id()::text::bigint AND OLD.created_at = now()) THEN
                RAISE EXCEPTION 'run % is stored, and % may neither delete it nor change its options',
                    OLD.id, session_user USING ERRCODE = 'insufficient_privilege';
            END IF;
        ELSIF NOT {records} AND OLD.submitted_by IS DISTINCT FROM session_user::text THEN
            RAISE EXCEPTION 'run % was submitted by %, and % may change only its own runs',
                OLD.id, coalesce(OLD.submitted_by, 'the owner'), session_user
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
    END
    $$;
    CREATE TRIGGER guard_run BEFORE INSERT OR UPDATE OR DELETE ON runs
        FOR EACH ROW EXECUTE FUNCTION guard_run();
"""

_MANIFESTS = """
    CREATE FUNCTION guard_manifest() RETURNS trigger LANGUAGE plpgsql {head} AS $$
    BEGIN
        IF NOT {is_owner} AND NOT EXISTS (
            SELECT FROM runs WHERE id = NEW.run_id AND submitted_by = session_user::text
              AND (TG_OP = 'UPDATE' OR {is_being_stored})
        ) THEN
            RAISE EXCEPTION '% may change no manifests of run %: it is stored, or of another login',
                session_user, NEW.run_id USING ERRCODE = 'insufficient_privilege';
        END IF;
        RETURN NEW;
    END
    $$;
    CREATE TRIGGER guard_manifest BEFORE INSERT OR UPDATE ON manifests
        FOR EACH ROW EXECUTE FUNCTION guard_manifest();
"""

_NEW_LINES = """
    CREATE FUNCTION guard_new_lines() RETURNS trigger LANGUAGE plpgsql {head} {look_up} AS $$
    DECLARE run text;
    BEGIN
        IF {is_owner} THEN
            RETURN NULL;
        END IF;
        SELECT run_id INTO run FROM (SELECT DISTINCT run_id FROM added_lines) AS of_runs
        WHERE NOT EXISTS (
            SELECT FROM runs
            WHERE id = run_id AND submitted_by = session_user::text AND {is_being_stored}
        );
        IF FOUND THEN
            RAISE EXCEPTION 'run % is not being stored by %, so it gets no lines', run, session_user
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        RETURN NULL;
    END
    $$;
    CREATE TRIGGER guard_new_lines AFTER INSERT ON jobs REFERENCING NEW TABLE AS added_lines
        FOR EACH STATEMENT EXECUTE FUNCTION guard_new_lines();
"""

# Cancelling a line may leave its check to a line of another run, which is then no longer `shared`.
_LINES = """
    CREATE FUNCTION guard_lines() RETURNS trigger LANGUAGE plpgsql {head} {look_up}
        SET enable_nestloop = off AS $$
    DECLARE line record;
    BEGIN
        IF {is_owner} OR NOT EXISTS (
            SELECT FROM (SELECT DISTINCT run_id FROM new_lines) AS of_runs
            WHERE NOT EXISTS (
                SELECT FROM runs
                WHERE id = run_id AND submitted_by = session_user::text AND {is_being_stored})
        ) THEN
            RETURN NULL;
        END IF;
        SELECT after.run_id, submitted_by, is_own, is_same INTO line
        FROM old_lines AS before JOIN new_lines AS after USING (run_id, manifest, line)
        LEFT JOIN LATERAL (
            SELECT submitted_by, submitted_by = session_user::text AS is_own,
                   {is_being_stored} AND submitted_by = session_user::text AS is_new
            FROM runs WHERE id = after.run_id OFFSET 0
        ) AS run ON true
        LEFT JOIN LATERAL (
            SELECT true AS is_same FROM checks AS was JOIN checks AS anew
              ON anew.id = after.check_id AND anew.status = 'queued' AND anew.attempt = 0
            WHERE was.id = before.check_id AND {same}
              AND array_position(ARRAY['lean', 'audit', 'kernel'], anew.tier)
                  >= array_position(ARRAY['lean', 'audit', 'kernel'], was.tier)
            OFFSET 0
        ) AS again ON before.check_id <> after.check_id
        WHERE (before.check_id, before.cancelled) IS DISTINCT FROM (after.check_id, after.cancelled)
          AND is_new IS NOT TRUE
          AND (before.check_id <> after.check_id AND is_same IS NOT TRUE
               OR is_own IS NOT TRUE AND NOT {records})
        LIMIT 1;
        IF NOT FOUND THEN
            RETURN NULL;
        ELSIF line.is_own IS NOT TRUE AND NOT {records} THEN
            RAISE EXCEPTION 'run % was submitted by %, and % may change only its own runs',
                line.run_id, coalesce(line.submitted_by, 'the owner'), session_user
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        RAISE EXCEPTION 'a line of run % may only get a new check that asks the same', line.run_id
            USING ERRCODE = 'insufficient_privilege';
    END
    $$;
    CREATE TRIGGER guard_lines AFTER UPDATE ON jobs REFERENCING OLD TABLE AS old_lines NEW TABLE AS new_lines
        FOR EACH STATEMENT EXECUTE FUNCTION guard_lines();
"""

#: The columns in which two checks with the same question are equal; limits, tier and policy may differ.
_SAME = (
    "environment",
    "program_sha256",
    "submitted::text",
    "fallback_sha256",
    "fallback_submitted::text",
    "restated_sha256",
    "restated_submitted::text",
    "challenge_sha256",
    "challenge_name",
    "context_end",
    "task",
    "native",
    "axioms",
    "goals",
    "stop_at_error",
)

# The cache key as `farm.runs.prepare.identity` makes it: of a check with a task the policy says so, too.
_KEY = """
    CREATE FUNCTION guard_cache_key() RETURNS trigger LANGUAGE plpgsql {head} AS $$
    DECLARE said text;
    BEGIN
        IF {is_owner} THEN
            RETURN NEW;
        ELSIF TG_OP = 'UPDATE' THEN
            RAISE EXCEPTION 'a check never gets another cache key' USING ERRCODE = 'insufficient_privilege';
        ELSIF NEW.status <> 'queued' AND (NEW.status <> 'done' OR NEW.identity IS NOT NULL) THEN
            RAISE EXCEPTION 'a new check waits for a worker, or its text decides it and no line shares it'
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        said := '[{{"axioms":[' || coalesce((
                SELECT string_agg(value::text, ',' ORDER BY value #>> '{{}}' COLLATE "C")
                FROM jsonb_array_elements(NEW.axioms)), '')
            || '],"environment":[' || to_json(NEW.environment) || ',' || to_json(NEW.environment_digest)
            || ',' || to_json(NEW.checker_version) || '],'
            || CASE WHEN NEW.goals THEN '"goals":true,' ELSE '' END || '"native":' || NEW.native::text
            || ',"policy":{{' || coalesce((
                SELECT string_agg(to_json(key) || ':' || value::text, ',' ORDER BY key COLLATE "C")
                FROM jsonb_each(CASE WHEN NEW.task IS NULL THEN NEW.policy ELSE NEW.policy - 'task' END)), '')
            || '}}' || CASE WHEN NEW.stop_at_error THEN ',"stop_at_error":true' ELSE '' END
            || ',"tier":' || to_json(NEW.tier) || '}},["' || encode(float8send(NEW.wall_seconds), 'hex')
            || '","' || encode(float8send(NEW.cpu_seconds), 'hex') || '",' || NEW.memory_mib || '],"'
            || encode(NEW.program_sha256, 'hex') || '",' || NEW.submitted::text
            || CASE WHEN NEW.context_end = 0 THEN '' ELSE ',{{"context_end":' || NEW.context_end || '}}' END
            || coalesce(',{{"task":"' || encode(sha256(convert_to(NEW.task, 'UTF8')), 'hex') || '"}}', '')
            || ',' || coalesce('["' || encode(NEW.challenge_sha256, 'hex') || '",'
                || to_json(coalesce(NEW.challenge_name, '')) || ']', 'null')
            || coalesce(',"' || encode(NEW.fallback_sha256, 'hex') || '",'
                || NEW.fallback_submitted::text, '')
            || coalesce(',{{"restated":["' || encode(NEW.restated_sha256, 'hex') || '",'
                || NEW.restated_submitted::text || ']}}', '') || ']';
        IF NEW.identity IS NOT NULL AND NEW.identity IS DISTINCT FROM sha256(convert_to(said, 'UTF8')) THEN
            RAISE EXCEPTION 'a check has a cache key that is not its own' USING
                ERRCODE = 'insufficient_privilege',
                HINT = 'Its environment may have changed while the run was stored: submit again.';
        END IF;
        RETURN NEW;
    END
    $$;
    CREATE TRIGGER guard_new_key BEFORE INSERT ON checks FOR EACH ROW
        WHEN (NEW.identity IS NOT NULL OR NEW.status <> 'queued') EXECUTE FUNCTION guard_cache_key();
    CREATE TRIGGER guard_key BEFORE UPDATE OF identity ON checks FOR EACH ROW
        WHEN (NEW.identity IS NOT NULL AND NEW.identity IS DISTINCT FROM OLD.identity)
        EXECUTE FUNCTION guard_cache_key();
"""

_TURNS = """
    CREATE FUNCTION guard_turn() RETURNS trigger LANGUAGE plpgsql {head} AS $$
    BEGIN
        IF NOT {is_owner} THEN
            RAISE EXCEPTION 'a check only moves forward in its queue'
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        RETURN NEW;
    END
    $$;
    CREATE TRIGGER guard_turn BEFORE UPDATE OF priority, turn ON checks FOR EACH ROW
        WHEN (OLD.status <> 'queued' OR (NEW.priority, NEW.turn) > (OLD.priority, OLD.turn))
        EXECUTE FUNCTION guard_turn();
"""

_COUNTS = """
    CREATE FUNCTION guard_tally() RETURNS trigger LANGUAGE plpgsql {head} AS $$
    BEGIN
        IF NOT {is_owner} AND NOT {records} THEN
            RAISE EXCEPTION 'attempts are counted by those who record them'
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        RETURN NEW;
    END
    $$;
    CREATE TRIGGER guard_tally BEFORE INSERT ON tallies FOR EACH ROW
        WHEN (NEW.subject <> 'lines') EXECUTE FUNCTION guard_tally();
"""

_FUNCTIONS = (_DROP, _DECIDE, _TAKE_BACK, _STATISTICS, _RECORDED)
_GUARDS = (_RUNS, _MANIFESTS, _NEW_LINES, _LINES, _KEY, _TURNS, _COUNTS)


def upgrade() -> None:
    """Add two columns, a table of one row, functions and triggers; no existing value changes."""
    op.execute(_TABLES)
    bind = op.get_bind()
    schema = bind.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    parts = {
        "schema": schema,
        "head": _HEAD.format(schema=schema),
        "look_up": _LOOK_UP,
        "is_owner": _IS_OWNER,
        "records": _RECORDS.format(schema=schema),
        "is_being_stored": _IS_BEING_STORED,
        "same": " AND ".join(f"anew.{each} IS NOT DISTINCT FROM was.{each}" for each in _SAME),
    }
    for statements in (*_FUNCTIONS, *_GUARDS):
        # As the driver reads it: `op.execute` would take `:true` for a parameter.
        bind.exec_driver_sql(statements.format(**parts).replace("%", "%%"))
    # Every function may be called by everybody at first.
    op.execute(f"REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC")
