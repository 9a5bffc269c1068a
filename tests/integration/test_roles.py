"""The roles of the database: each part of the farm works with its own, and none does what it must not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors
from sqlalchemy import Engine, make_url, text

from farm.assembly.program import AssemblyOptions
from farm.errors import FarmError, RoleRefused
from farm.judging.states import Priority
from farm.judging.submit_options import SubmitOptions
from farm.manifest.entry import Entry
from farm.runs import revise
from farm.runs.batch import Items, store_batch
from farm.runs.pick import Pick
from farm.store import postgres
from farm.store.batches import Batch, ItemKey
from farm.store.keys import Key, Keys, Scope
from farm.store.queries import Queries
from farm.store.rights import FUNCTIONS, OWNED, SEQUENCES, TABLES, VIEWS, Rights, Role
from farm.store.roles import make_roles
from farm.store.transitions import Store
from farm.store.workers import Workers
from farm.task import Task
from tests.farms import CORE, a_decision, load

LINE = "theorem t : True := trivial"
#: A login of a person, who is a member of `farm_submitter`; others submit with that role itself.
PERSON = "farm_test_person"


@dataclass(frozen=True)
class Farm:
    """A farm whose database belongs to `farm_owner`, reached as each role."""

    engine: Engine

    def url(self, role: str) -> str:
        return self.engine.url.set(username=role).render_as_string(hide_password=False)

    def store(self, role: str) -> Store:
        name = "farm-worker" if role == Role.WORKER else "farm"
        return Store(postgres.connect(self.url(role), application=name, connections=4))

    def ask(self, question: str, **values: object) -> list[object]:
        with self.engine.connect() as connection:
            return list(connection.scalars(text(question), values))


@pytest.fixture(scope="module")
def farm(
    new_database: Callable[[], AbstractContextManager[Engine]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Farm]:
    """A farm with a run of the role's and one of a person's, whose lines are proved, timed out and queued."""
    with new_database() as engine:
        url = engine.url.set(host=engine.url.host).render_as_string(hide_password=False)
        make_roles(url, passwords={}, new_passwords=dict.fromkeys(Role, "secret"))
        with engine.begin() as connection:
            if not connection.scalar(text("SELECT true FROM pg_roles WHERE rolname = :n"), {"n": PERSON}):
                connection.execute(text(f"CREATE ROLE {PERSON} LOGIN IN ROLE {Role.SUBMITTER}"))
        farm = Farm(engine)
        _fill(farm, tmp_path_factory.mktemp("lines"))
        yield farm


def _fill(farm: Farm, folder: Path) -> None:
    worker = farm.store(Role.WORKER)
    worker.register([CORE])
    for role in (PERSON, Role.SUBMITTER):
        entries = [{"name": f"{role}{n}", "predicted_proof": f"{LINE} -- {role} {n}"} for n in range(4)]
        urgency = Priority.ONLINE if role == Role.SUBMITTER else Priority.BATCH
        load(farm.store(role), folder / f"{role}.jsonl", *entries, priority=urgency)
        first, second = worker.claim(["core"], worker="w", lease_seconds=600, most=2)
        worker.record([(first, a_decision()), (second, a_decision(limit="wall"))])
    worker.claim(["core"], worker="w", lease_seconds=600)
    Keys(farm.engine).add(
        Key(id="k1", name="trainer", scopes=frozenset(Scope), classes=frozenset({"batch"})), bytes(32)
    )


_PLAIN = {"path": "items", "header": "", "formal_statement": "", "generation": "", "predicted_proof": None}
_STATED = {**_PLAIN, "formal_statement": "theorem t (é : Nat) : é = é", "generation": ":= rfl"}
#: An answer of which three programs are made.
_OWN = "```lean\nnamespace X\nvariable (n : Nat)\ntheorem t (é : Nat) : é = é := by\n  rfl\nend X\n```"
ITEMS = (
    {**_PLAIN, "name": "a", "predicted_proof": f"{LINE} -- batch"},
    {**_STATED, "name": "b", "context": "import A\n\nnamespace N\n\n/-- Doc. -/\n"},
    {
        **_STATED,
        "name": "c",
        "generation": "import B\n\ntheorem t (é : Nat) : é = é := by\n  rfl",
        "header": "import A",
    },
    *({**_STATED, "name": task, "generation": _OWN, "task": Task(task=task)} for task in ("prove", "either")),
    {**_PLAIN, "name": "d", "predicted_proof": "\0"},
)


def _stored(
    store: Store, *items: Mapping[str, Any], keys: Sequence[str | None] = (), owner: str = "trainer"
) -> Batch:
    entries = [Entry(**{**each, "line": number}) for number, each in enumerate(items, 1)]
    options = SubmitOptions(assembly=AssemblyOptions(), environment="core", wall_seconds=7.7)
    given = [
        ItemKey(key=key, sha256=str(items[number - 1]).encode(), line=number)
        for number, key in enumerate(keys, 1)
        if key is not None
    ]
    made = Items(entries, options, Queries(store.engine).served())
    return store_batch(store, made, keys=given, owner=owner)


class TestEachFlow:
    def test_a_submitter_stores_cancels_retries_and_reads_its_runs(self, farm: Farm, tmp_path: Path) -> None:
        submitter, worker = farm.store(Role.SUBMITTER), farm.store(Role.WORKER)
        entries = [
            {"name": "own", "predicted_proof": f"{LINE} -- flow"},
            {"name": "twin", "predicted_proof": f"{LINE} -- flow"},
            {"name": "unreadable", "predicted_proof": "\0"},
            {"name": "läng\u2028e", "predicted_proof": "theorem é : 1 = 1 := rfl", "timeout": 12.3},
            {"name": "given", "predicted_proof": f"{LINE} -- task", "axioms": ["b", "a"]},
        ]
        axioms = SubmitOptions(assembly=AssemblyOptions(), environment="core").assurance
        run = load(submitter, tmp_path / "a.jsonl", *entries, priority=Priority.INTERACTIVE, goals=True)
        claims = worker.claim(["core"], worker="w", lease_seconds=600, most=3)
        assert [each.check.assurance.native for each in claims] == [axioms.native] * 3
        worker.record([(claims[0], a_decision()), (claims[1], a_decision(limit="wall"))])
        assert revise.cancel(submitter, run) == 1
        assert revise.retry(submitter, run, Pick(verdict=("timeout",)), wall_seconds=60) == 1
        queries = Queries(submitter.engine)
        assert queries.tally(run).statuses == {"done": 3, "queued": 1, "cancelled": 1}
        # The cache keys are accepted: the same lines share the verdict.
        again = load(submitter, tmp_path / "b.jsonl", *entries[:2], priority=Priority.INTERACTIVE, goals=True)
        assert queries.tally(again).verdicts == {("proved", "ok"): 2}
        assert revise.cancel(submitter, run) == 1
        # So does a program with `farm.api`, whose checks are batches of no key.
        batch = _stored(submitter, *ITEMS, owner="")
        assert revise.cancel(submitter, batch.id) == len(ITEMS) - 1

    def test_a_service_stores_batches_and_reads_keys(self, farm: Farm) -> None:
        service = farm.store(Role.SERVICE)
        assert [each.key.name for each in Keys(service.engine).valid()] == ["trainer"]
        first, again = (_stored(service, *ITEMS, keys=tuple("abcdef")) for _ in range(2))
        assert first.id == again.id
        other = _stored(service, ITEMS[0], {**ITEMS[1], "name": "new"}, keys=("a", None))
        assert other.items[0] == first.items[0]
        service.leave(first.id, seconds=600)
        service.ask_again([first.id])
        assert farm.ask("SELECT submitted_by FROM runs WHERE id = :id", id=first.id) == [Role.SERVICE]
        # Equal items of another batch have the same checks: their cache keys are as PostgreSQL computes them.
        equal = _stored(service, *ITEMS)
        assert (
            sorted(equal.checks.values())[:-1] == sorted(first.checks.values())[:-1]
        )  # its text decides the last
        assert revise.cancel(service, first.id) == revise.cancel(service, equal.id) == len(ITEMS) - 1

    def test_a_worker_reports_sweeps_and_is_awaited(self, farm: Farm) -> None:
        worker = farm.store(Role.WORKER)
        assert worker.sweep(checker_version="1").taken_back == 0
        assert Workers(worker.engine).forget() == 0
        submitter = Queries(farm.store(Role.SUBMITTER).engine)
        with worker.transaction() as connection:
            began = connection.scalar(text("SELECT now()"))
            # The worker's transaction is another role's, whose beginning PostgreSQL hides from the submitter.
            assert submitter.recorded_until() == began
        assert submitter.recorded_until() > began

    def test_a_migration_by_a_member_makes_what_the_owner_owns(
        self, farm: Farm, empty_database_url: str
    ) -> None:
        made = make_roles(empty_database_url, passwords={}, new_passwords=dict.fromkeys(Role, ""))
        assert (made.new, made.has_tables) == (frozenset(), False)
        postgres.upgrade(empty_database_url)
        engine = postgres.connect(empty_database_url, application="farm-test")
        with engine.connect() as connection:
            owners = connection.scalars(
                text("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'")
            )
            assert list(owners) == [Role.OWNER]
            assert _granted(connection.connection.driver_connection) == _expected()  # type: ignore[arg-type]
        engine.dispose()


def _names(privileges: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each privilege of a grant with the column it is for, "" for the whole."""
    for each in privileges:
        word, _, columns = each.partition(" ")
        for column in columns.strip("()").split(", "):
            yield word, column


def _expected() -> set[tuple[str, str, str, str]]:
    kinds: Mapping[str, Mapping[str, Rights]] = {"r": TABLES, "v": VIEWS, "S": SEQUENCES, "f": FUNCTIONS}
    return {
        (f"{kind} {name}", role, word, column)
        for kind, objects in kinds.items()
        for name, rights in objects.items()
        for role, privileges in rights.items()
        for word, column in _names(privileges)
    }


def _granted(connection: psycopg.Connection[tuple[str, str, str, str]]) -> set[tuple[str, str, str, str]]:
    """Return what is granted to others than owners: object, role ("-" for everybody), privilege, column."""
    found = connection.execute("""
        WITH own AS (SELECT oid FROM pg_namespace WHERE nspname IN ('public', 'report')), granted AS (
            SELECT relkind::text || ' ' || relname AS what, acl.*, '' AS at, relowner AS owner
            FROM pg_class, aclexplode(relacl) AS acl WHERE relnamespace IN (SELECT oid FROM own)
            UNION ALL
            SELECT relkind::text || ' ' || relname, acl.*, attname, relowner
            FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid, aclexplode(attacl) AS acl
            WHERE relnamespace IN (SELECT oid FROM own)
            UNION ALL
            SELECT 'f ' || proname || '(' || pg_get_function_identity_arguments(oid) || ')',
                   acl.*, '', proowner
            FROM pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) AS acl
            WHERE pronamespace IN (SELECT oid FROM own)
        )
        SELECT what, grantee::regrole::text, privilege_type, at FROM granted WHERE grantee <> owner
    """)
    return {(_typed(what), role, word, column) for what, role, word, column in found}


def _typed(what: str) -> str:
    """Return a function's name without the names of its arguments."""
    return re.sub(r"(?<=[(,])( ?)\w+ (?=\w)", r"\1", what)


class TestTheTableOfRights:
    def test_it_names_every_table_view_sequence_and_function_of_the_schema(self, farm: Farm) -> None:
        found = farm.ask("""
            SELECT relkind::text || ' ' || relname FROM pg_class
            WHERE relnamespace IN ('public'::regnamespace, 'report'::regnamespace)
              AND relkind NOT IN ('i', 'I', 't')
            UNION ALL
            SELECT 'f ' || proname || '(' || pg_get_function_identity_arguments(oid) || ')' FROM pg_proc
            WHERE pronamespace IN ('public'::regnamespace, 'report'::regnamespace)
        """)
        kinds = {"r": TABLES, "v": VIEWS, "S": SEQUENCES, "f": FUNCTIONS}
        listed = {f"{kind} {name}" for kind, objects in kinds.items() for name in objects}
        assert {_typed(str(each)) for each in found} == listed

    def test_exactly_these_rights_are_granted_and_none_to_everybody(self, farm: Farm) -> None:
        with psycopg.connect(farm.url("farm").replace("+psycopg", "")) as connection:
            assert _granted(connection) == _expected()

    def test_verdicts_and_attempts_are_only_ever_added(self) -> None:
        words = {
            (table, word)
            for table in ("verdicts", "attempts")
            for rights in TABLES[table].values()
            for word, _ in _names(rights)
        }
        assert {word for _, word in words} == {"SELECT", "INSERT"}
        assert [role for role, rights in TABLES["verdicts"].items() if "INSERT" in rights] == [Role.WORKER]


_VERDICT = """
    INSERT INTO verdicts (check_id, attempt, verdict, reason, detail, messages, hits, wall_seconds,
                          cpu_seconds, peak_memory_kib, isolation, environment_digest, toolchain,
                          checker_version)
    SELECT {queued}, 1, 'proved', 'ok', '', '[]', '[]', 0, 0, 0, '', 'd1', '', '1'
"""
_COPIED = (
    *(
        "program_sha256",
        "submitted",
        "challenge_sha256",
        "challenge_name",
        "environment",
        "environment_digest",
    ),
    *("checker_version", "tier", "native", "axioms", "policy", "wall_seconds", "cpu_seconds", "memory_mib"),
    *("priority", "turn"),
)


def _new_check(**changed: str) -> str:
    """Return the insertion of a check like the timed-out one of the own run, with these columns changed."""
    values = {**{name: name for name in _COPIED}, "status": "'queued'", **changed}
    return (
        f"INSERT INTO checks ({', '.join(values)}) SELECT {', '.join(values.values())} "
        "FROM checks WHERE id = {timeout};"
    )


_ADD_LINE = (
    "INSERT INTO jobs (run_id, manifest, line, check_id, name, segments, warnings) "
    "VALUES ('%s', 0, 99, {proved}, '', '[]', '[]');"
)
_ADD_RUN = "INSERT INTO runs (id, options, farm_version%s) VALUES ('mine', '{{}}', ''%s);"
_ASK_AGAIN = "UPDATE jobs SET check_id = 900001 WHERE check_id = {timeout};"
_SHADOW = """
    CREATE TEMPORARY TABLE {table} (LIKE public.{table} INCLUDING DEFAULTS);
    SET LOCAL search_path = pg_temp, public;
"""
#: What no role but the owner does, by kind.
NOBODY = {
    "change a verdict": "UPDATE verdicts SET verdict = 'proved', reason = 'ok'",
    "change one column of a verdict": "UPDATE verdicts SET detail = '' WHERE check_id = {proved}",
    "delete a verdict": "DELETE FROM verdicts WHERE check_id = {timeout}",
    "empty the verdicts": "TRUNCATE verdicts",
    "overwrite a verdict": _VERDICT.replace("{queued}", "{timeout}")
    + "ON CONFLICT (check_id) DO UPDATE SET verdict = 'proved'",
    "merge a verdict": "MERGE INTO verdicts USING (SELECT {timeout} AS id) AS one ON check_id = id "
    "WHEN MATCHED THEN UPDATE SET verdict = 'proved'",
    "change an attempt": "UPDATE attempts SET outcome = 'proved'",
    "delete an attempt": "DELETE FROM attempts",
    "give a judged check another program": "UPDATE checks SET program_sha256 = sha256('x') "
    "WHERE id = {proved}",
    "give a judged check another challenge": "UPDATE checks SET challenge_sha256 = NULL WHERE id = {proved}",
    "give a judged check other limits": "UPDATE checks SET wall_seconds = 1e6, tier = 'lean'",
    "give a check the cache key of another": "UPDATE checks SET identity = sha256('x') WHERE id = {proved}",
    "delete a check": "DELETE FROM checks WHERE id = {timeout}",
    "delete a line": "DELETE FROM jobs",
    "delete a run": "DELETE FROM runs WHERE id = '{run}'",
    "move a line": "UPDATE jobs SET line = 99",
    "point an own line at a proof": "UPDATE jobs SET check_id = {proved} WHERE check_id = {timeout}",
    "point another's line at a proof": "UPDATE jobs SET check_id = {proved} WHERE check_id = {theirs}",
    "add a line to a stored run": _ADD_LINE % "{run}",
    "change a run's options": "UPDATE runs SET options = '{{}}' WHERE id = '{run}'",
    "take a run": "UPDATE runs SET submitted_by = session_user",
    "change a text": "UPDATE programs SET source = 'x'",
    "delete a text": "DELETE FROM programs",
    "make a key": "INSERT INTO api_keys (id, name, secret_sha256, scopes, classes) "
    "VALUES ('k', 'k', sha256(''), '{{submit}}', '{{batch}}')",
    "widen a key": "UPDATE api_keys SET scopes = '{{submit,read,cancel}}', revoked_at = NULL",
    "change the schema's version": "UPDATE alembic_version SET version_num = '9999'",
    "change the oldest release": "UPDATE compatibility SET oldest = '9999'",
    "make a table": "CREATE TABLE public.mine (a int)",
    "make a table in report": "CREATE TABLE report.mine (a int)",
    "make a function": "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "replace a function": "CREATE OR REPLACE FUNCTION recorded_until() RETURNS timestamptz LANGUAGE sql "
    "AS 'SELECT now()'",
    "make a schema": "CREATE SCHEMA mine",
    "make a role": "CREATE ROLE other",
    "change another's password": "ALTER ROLE farm_owner PASSWORD 'x'",
    "grant itself the server's programs": "GRANT pg_execute_server_program TO CURRENT_USER",
    "grant a table": "GRANT UPDATE ON verdicts TO PUBLIC; UPDATE verdicts SET verdict = 'proved'",
    "become the owner": "SET ROLE farm_owner",
    "own a table": "ALTER TABLE verdicts OWNER TO CURRENT_USER",
    "drop a table": "DROP TABLE verdicts",
    "drop a guard": "DROP TRIGGER guard_lines ON jobs",
    "switch off the guards": "ALTER TABLE jobs DISABLE TRIGGER USER",
    "switch off all triggers": "SET LOCAL session_replication_role = replica",
    "add a trigger": "CREATE TRIGGER mine BEFORE INSERT ON verdicts FOR EACH ROW "
    "EXECUTE FUNCTION guard_run()",
    "lock everybody out": "LOCK TABLE checks IN ACCESS EXCLUSIVE MODE",
    "run a program": "COPY (SELECT 1) TO PROGRAM 'true'",
    "read a program": "CREATE TEMPORARY TABLE got (a text); COPY got FROM PROGRAM 'id'",
    "write a file": "COPY (SELECT 1) TO '/tmp/farm-roles-test'",
    "read a file": "SELECT pg_read_file('/etc/passwd')",
    "read a file as an object": "SELECT lo_import('/etc/passwd')",
    "make a language": "CREATE LANGUAGE mine HANDLER plpgsql_call_handler",
    "load a library": "LOAD 'auto_explain'",
    "change the server": "SET LOCAL zero_damaged_pages = on",
    "see the passwords": "SELECT rolpassword FROM pg_authid",
    "replace a view": "CREATE OR REPLACE VIEW report.lines AS SELECT 1",
    "own a view": "ALTER VIEW report.lines OWNER TO CURRENT_USER",
    "write through a rule on a view": "CREATE RULE mine AS ON INSERT TO report.runs DO INSTEAD NOTHING",
    "write through a trigger on a view": "CREATE TRIGGER mine INSTEAD OF UPDATE ON report.lines "
    "FOR EACH ROW EXECUTE FUNCTION guard_run()",
    "read a table through a view of its own": "CREATE TEMPORARY VIEW mine AS TABLE sentences;TABLE mine",
    "set a sequence": "SELECT setval('checks_id_seq', 1)",
    "restart a sequence": "ALTER SEQUENCE checks_id_seq RESTART",
    "lead a function elsewhere": "ALTER FUNCTION recorded_until() SET search_path = pg_temp",
    "take a function's rights": "ALTER FUNCTION take_back(bigint[], text) SECURITY INVOKER",
    "call a guard": "SELECT guard_run()",
    "inherit verdicts": "CREATE TEMPORARY TABLE mine () INHERITS (public.verdicts)",
    "act on every command": "CREATE EVENT TRIGGER mine ON ddl_command_start EXECUTE FUNCTION guard_run()",
    "merge a line into a stored run": "MERGE INTO jobs USING (SELECT 1) AS one ON false "
    "WHEN NOT MATCHED THEN " + _ADD_LINE.replace(";", "").replace(" INTO jobs", "") % "{run}",
    "merge an own line to a proof": "MERGE INTO jobs USING (SELECT {timeout} AS id) AS one "
    "ON check_id = one.id WHEN MATCHED THEN UPDATE SET check_id = {proved}",
    "lock verdicts": "LOCK TABLE verdicts IN SHARE MODE",
    "lock a verdict": "SELECT 1 FROM verdicts WHERE check_id = {proved} FOR UPDATE",
    "end others' connections": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE usename = 'farm'",
    "make an extension": "CREATE EXTENSION dblink",
    "reach another server": "CREATE FOREIGN DATA WRAPPER mine",
    "publish verdicts": "CREATE PUBLICATION mine FOR TABLE verdicts",
    "keep a slot of the log": "SELECT pg_create_logical_replication_slot('mine', 'pgoutput')",
    "make a function of the server's code": "CREATE FUNCTION pg_temp.mine() RETURNS int LANGUAGE internal "
    "AS 'pg_backend_pid'",
    "change the rights of new tables": "ALTER DEFAULT PRIVILEGES FOR ROLE farm_owner "
    "GRANT ALL ON TABLES TO PUBLIC",
    "take what the owner owns": "REASSIGN OWNED BY farm_owner TO CURRENT_USER",
    "drop what the owner owns": "DROP OWNED BY farm_owner",
    "log in as the owner": "SET SESSION AUTHORIZATION farm_owner",
    "set another's search path": "ALTER ROLE farm_owner SET search_path = pg_temp",
    "have more connections": "ALTER ROLE CURRENT_USER CONNECTION LIMIT 1000",
    "index verdicts": "CREATE INDEX ON verdicts (reason)",
    "hide rows": "ALTER TABLE verdicts ENABLE ROW LEVEL SECURITY",
    "write the catalogue": "UPDATE pg_class SET relowner = 10 WHERE relname = 'verdicts'",
    "write a file from an object": "SELECT lo_export(lo_create(0), '/tmp/farm-roles-test')",
}
#: What those do not who record no verdicts.
ASKING = {
    "write a verdict": _VERDICT,
    "write a verdict by its text": "SELECT decide_by_text(ARRAY[{queued}]::bigint[], ARRAY['proved'], "
    "ARRAY['ok'], ARRAY[''], '1')",
    "reject another's line by its text": "SELECT decide_by_text(ARRAY[{theirs}]::bigint[], "
    "ARRAY['rejected'], ARRAY['error'], ARRAY[''], '1')",
    "write an attempt": "INSERT INTO attempts VALUES ({queued}, 1, 'w', now(), now(), 'proved', '')",
    "count an attempt": "INSERT INTO tallies VALUES ('attempts', 'proved', 1000)",
    "take back a verdict": "SELECT take_back(ARRAY[{proved}]::bigint[], '')",
    "drop checks from an older state": "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;"
    "SELECT drop_idle_checks(ARRAY[{queued}]::bigint[])",
    "take a lease": "UPDATE checks SET lease_until = now() + interval '1 day' WHERE id = {running}",
    "claim a check": "UPDATE checks SET status = 'running', lease_until = now() WHERE id = {queued}",
    "end a check": "UPDATE checks SET status = 'done' WHERE id = {queued}",
    "queue a judged check": "UPDATE checks SET status = 'queued' WHERE id = {proved}",
    "steal an attempt": "UPDATE checks SET worker = 'me', attempt = attempt + 1 WHERE id = {running}",
    "move others back": "UPDATE checks SET turn = turn + 1000000 WHERE id = {queued}",
    "add a judged check": _new_check(status="'done'", attempt="1"),
    "add a leased check": _new_check(status="'running'", lease_until="now()"),
    "add a check with another's cache key": _new_check(identity="sha256('another')"),
    "add an ended check with a cache key": _new_check(status="'done'", identity="sha256('another')"),
    "add a cancelled check": _new_check(status="'cancelled'"),
    "cancel another's run": "UPDATE runs SET cancelled_at = now() WHERE id = '{other_run}'",
    "end another's run": "UPDATE runs SET deadline_at = now() WHERE id = '{other_run}'",
    "cancel another's line": "UPDATE jobs SET cancelled = 'user' WHERE run_id = '{other_run}'",
    "cancel the lines of everybody": "UPDATE jobs SET cancelled = 'user'",
    "change another's manifest": "UPDATE manifests SET sha256 = 'x' WHERE run_id = '{other_run}'",
    "add a manifest to a stored run": "INSERT INTO manifests (run_id, number, path, sha256, size) "
    "VALUES ('{run}', 9, '/etc/passwd', '', 0)",
    "send a manifest elsewhere": "UPDATE manifests SET path = '/etc/passwd'",
    "store a run as another": _ADD_RUN % (", submitted_by", ", 'farm_owner'"),
    "store a run of an older transaction": _ADD_RUN % (", stored_by", ", 1"),
    "store a run of another moment": _ADD_RUN % (", created_at", ", '2020-01-01'"),
    "add lines to another's run beside one's own": _ADD_RUN % ("", "")
    + _ADD_LINE % "mine"
    + _ADD_LINE % "{other_run}",
    "touch a run and add a line to it": "UPDATE runs SET deadline_at = NULL WHERE id = '{run}';"
    + _ADD_LINE % "{run}",
    "ask an own line another program": _new_check(id="900001", program_sha256="sha256('x')") + _ASK_AGAIN,
    "ask an own line another challenge": _new_check(id="900001", challenge_sha256="sha256('x')") + _ASK_AGAIN,
    "allow an own line an axiom": _new_check(id="900001", axioms="'[\"x\"]'") + _ASK_AGAIN,
    "ask an own line on a weaker tier": _new_check(id="900001", tier="'lean'") + _ASK_AGAIN,
    "register an environment": "INSERT INTO environments (name, digest, toolchain, tiers) "
    "VALUES ('x', '', '', '{{lean}}')",
    "change an environment": "UPDATE environments SET digest = 'mine'",
    "be a worker": "INSERT INTO workers SELECT * FROM workers",
    "hold up sweeps": "SELECT 1 FROM sweeping FOR UPDATE",
    "be a worker by role": "SET ROLE farm_worker",
}
#: What only a submitter could try: temporary tables in the place of the farm's.
SHADOWS = {
    "decide by a table of its own": _SHADOW.format(table="checks")
    + "INSERT INTO pg_temp.checks SELECT * FROM public.checks WHERE id = {theirs};"
    "UPDATE pg_temp.checks SET status = 'done', attempt = 0, identity = NULL, lease_until = NULL;"
    "SELECT public.decide_by_text("
    "ARRAY[{theirs}]::bigint[], ARRAY['rejected'], ARRAY['error'], ARRAY[''], '1')",
    "pass a guard by verdicts of its own": _SHADOW.format(table="verdicts")
    + "UPDATE public.jobs SET cancelled = 'user' WHERE run_id = '{other_run}'",
    "pass a guard by runs of its own": _SHADOW.format(table="runs")
    + "INSERT INTO pg_temp.runs (id, options, farm_version, submitted_by, stored_by, created_at) VALUES "
    "('{run}', '{{}}', '', session_user, pg_current_xact_id()::text::bigint, now());"
    + _ADD_LINE.replace("jobs", "public.jobs")
    % "{run}",
    "pass a guard by an operator of its own": "CREATE FUNCTION pg_temp.yes(text, text) RETURNS bool "
    "LANGUAGE sql AS 'SELECT true';"
    "CREATE OPERATOR pg_temp.= (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_temp.yes);"
    "SET LOCAL search_path = pg_temp, pg_catalog, public;"
    "UPDATE public.runs SET cancelled_at = now() WHERE public.runs.id OPERATOR(pg_catalog.=) '{other_run}'",
}
SECRETS = {
    "read the keys' digests": "SELECT secret_sha256 FROM api_keys",
    "read the plan of a query for keys": "EXPLAIN SELECT * FROM api_keys",
}
BATCHES = {
    "store a batch of a key": "INSERT INTO runs (id, options, farm_version, owner) "
    "VALUES ('x', '{{}}', '', 'trainer')",
    "take a key's items": "INSERT INTO item_keys VALUES ('trainer', 'k', sha256(''), '{run}', 1)",
}

TRIED = {
    Role.SUBMITTER: {**NOBODY, **ASKING, **SHADOWS, **SECRETS, **BATCHES},
    Role.SERVICE: {**NOBODY, **ASKING},
    Role.WORKER: {**NOBODY, **SECRETS, **BATCHES},
    Role.READER: {**NOBODY, **ASKING, **SHADOWS, **SECRETS, **BATCHES},
}
_WRITING = "SET TRANSACTION READ WRITE;"
_ALL_CAN = {
    "change its own password": _WRITING + "ALTER ROLE CURRENT_USER PASSWORD 'x'",
    "hold up a migration": "SELECT pg_advisory_xact_lock(x'6661726D'::int)",
    "fill the disk": _WRITING + "SELECT lo_create(0)",
}
_PARTS_CAN = {
    **_ALL_CAN,
    "read all texts and verdicts": "SELECT 1 / count(source)::int FROM programs, verdicts",
    "hold up the workers": "SELECT FROM checks WHERE id = {running} FOR UPDATE",
    "take a check's next number": _new_check(id="800000"),
}
_SUBMITTERS_CAN = {
    **_PARTS_CAN,
    "have any check judged first": "UPDATE checks SET priority = 0, turn = -1 WHERE id = {theirs}",
    "show another's proof in a run of its own": _ADD_RUN % ("", "") + _ADD_LINE % "mine",
    "miscount lines": "INSERT INTO tallies VALUES ('lines', 'own', 1000)",
}
#: What a stolen password does all the same, as docs/why/trust.md says.
STILL = {
    Role.SUBMITTER: _SUBMITTERS_CAN,
    Role.SERVICE: {**_SUBMITTERS_CAN, **SECRETS, **BATCHES},
    Role.WORKER: {
        **_PARTS_CAN,
        "record a false verdict": _VERDICT,
        "take back a proof": "SELECT take_back(ARRAY[{proved}]::bigint[], '')",
        "contest a proof": "SELECT contest(ARRAY[{proved}]::bigint[])",
        "change an environment": "UPDATE environments SET digest = 'mine'",
    },
    Role.READER: _ALL_CAN,
}
#: How PostgreSQL refuses: by rights, and the reader also because its transactions only read.
_REFUSALS = (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction)


@pytest.fixture(scope="module")
def places(farm: Farm) -> dict[str, object]:
    """The ids that the attempts name."""
    asked = """
        SELECT id FROM runs WHERE owner IS NULL AND submitted_by = :by ORDER BY created_at LIMIT 1
    """
    run, other = (farm.ask(asked, by=role)[0] for role in (Role.SUBMITTER, PERSON))
    check = (
        "SELECT check_id FROM jobs JOIN checks ON checks.id = check_id "
        "LEFT JOIN verdicts USING (check_id) WHERE"
    )
    found = {
        "proved": f"{check} verdict = 'proved' AND run_id = :run",
        "timeout": f"{check} verdict = 'timeout' AND run_id = :run",
        "queued": f"{check} status = 'queued' AND run_id = :run",
        "running": "SELECT id FROM checks WHERE status = 'running'",
        "theirs": f"{check} status IN ('queued', 'running') AND run_id = '{other}' AND :run = :run",
    }
    return {"run": run, "other_run": other} | {
        name: farm.ask(question, **({"run": run} if ":run" in question else {}))[0]
        for name, question in found.items()
    }


def _succeeded(url: str, tries: Mapping[str, str], places: Mapping[str, object]) -> list[str]:
    """Return which of these statements PostgreSQL does not refuse."""
    succeeded = []
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        for what, statement in tries.items():
            try:
                connection.execute(statement.format(**places).encode())
            except _REFUSALS:
                pass
            except psycopg.Error as error:
                succeeded.append(f"{what}: {error}")
            else:
                succeeded.append(what)
            connection.rollback()
    return succeeded


@pytest.mark.parametrize("role", TRIED)
def test_a_role_does_nothing_that_it_must_not(farm: Farm, places: dict[str, object], role: Role) -> None:
    before = farm.ask("SELECT md5(string_agg(verdicts::text, '' ORDER BY check_id)) FROM verdicts")
    assert _succeeded(farm.url(role), TRIED[role], places) == []
    assert farm.ask("SELECT md5(string_agg(verdicts::text, '' ORDER BY check_id)) FROM verdicts") == before


@pytest.mark.parametrize("role", STILL)
def test_a_stolen_password_does_what_the_page_says(farm: Farm, places: dict[str, object], role: Role) -> None:
    assert _succeeded(farm.url(role), STILL[role], places) == list(STILL[role])


def test_what_is_refused_is_refused_for_the_role_and_not_for_a_mistake_in_it(
    farm: Farm, places: dict[str, object]
) -> None:
    tried = {**ASKING, **SECRETS, **BATCHES}
    refused = tried.keys() - set(_succeeded(farm.url("farm"), tried, places))
    # These can never be, whoever asks for them.
    assert refused == {
        "write a verdict by its text",
        "reject another's line by its text",
        "drop checks from an older state",
    }


def test_a_check_that_somebody_waits_for_is_dropped_by_nobody(farm: Farm, places: dict[str, object]) -> None:
    with psycopg.connect(farm.url(Role.SUBMITTER).replace("+psycopg", "")) as connection:
        connection.execute("SELECT drop_idle_checks(array_agg(id)) FROM checks")
    assert farm.ask("SELECT status FROM checks WHERE id = :id", id=places["theirs"]) == ["queued"]
    assert farm.ask("SELECT status FROM checks WHERE id = :id", id=places["running"]) == ["running"]


def test_a_refusal_names_the_role_and_the_reason(farm: Farm, places: dict[str, object]) -> None:
    words = f"the role {Role.SUBMITTER} do this: run .* was submitted by {PERSON}, and .* only its own runs"
    with pytest.raises(RoleRefused, match=words):
        revise.cancel(farm.store(Role.SUBMITTER), str(places["other_run"]))
    with pytest.raises(RoleRefused, match=r"farm_reader do this: permission denied for table \w+\."):
        Queries(farm.store(Role.READER).engine).tally(str(places["run"]))


@pytest.mark.parametrize(
    ("rights", "remedy"),
    [
        ("ALTER ROLE farm_service SUPERUSER", "ALTER ROLE farm_service NOSUPERUSER"),
        (
            "ALTER ROLE farm_worker CREATEROLE BYPASSRLS",
            "farm_worker NOCREATEROLE; ALTER ROLE farm_worker NOBYP",
        ),
        (
            "GRANT pg_execute_server_program TO farm_submitter",
            "REVOKE pg_execute_server_program FROM farm_submitter",
        ),
        ("ALTER TABLE verdicts OWNER TO farm_worker", "REASSIGN OWNED BY farm_worker TO farm_owner"),
        ("GRANT farm_owner TO farm_submitter", "REVOKE farm_owner FROM farm_submitter"),
    ],
)
def test_a_role_that_exists_with_other_rights_is_refused_with_the_remedy_until_that_is_done(
    farm: Farm, rights: str, remedy: str
) -> None:
    made = [farm.url("farm")], {"passwords": {}, "new_passwords": dict.fromkeys(Role, "")}
    with farm.engine.begin() as connection:
        if rights.startswith("GRANT farm_owner"):  # the owner is a member of the others
            connection.execute(text("REVOKE farm_submitter FROM farm_owner"))
        connection.execute(text(rights))
    with pytest.raises(FarmError, match=f"exists and has rights .* nothing was changed; .*{remedy}") as told:
        make_roles(*made[0], **made[1])
    with farm.engine.begin() as connection:
        connection.execute(text(str(told.value).partition("again: ")[2]))
    assert make_roles(*made[0], **made[1]).new == frozenset()


@contextmanager
def _administrator(
    url: str, name: str, attributes: str = ""
) -> Iterator[tuple[psycopg.Connection[Any], str]]:
    """Make a login that is no superuser; yields a superuser's connection, and the login's URL."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as superuser:
        superuser.execute(f'CREATE ROLE "{name}" LOGIN {attributes}'.encode())
        yield superuser, make_url(url).set(username=name).render_as_string(hide_password=False)


def test_an_administrator_that_is_no_superuser_is_told_what_it_lacks_until_it_has_that(
    farm: Farm, empty_database_url: str
) -> None:
    database, me = make_url(empty_database_url), '"Test-cloud"'
    with _administrator(empty_database_url, "Test-cloud") as (superuser, url):
        # As in a database that was made before PostgreSQL 15.
        superuser.execute("ALTER SCHEMA public OWNER TO CURRENT_USER; GRANT ALL ON SCHEMA public TO PUBLIC")
        rights = [f"ALTER ROLE {me} CREATEROLE", f"ALTER ROLE {me} CREATEDB"]
        rights += [f"ALTER DATABASE {database.database} OWNER TO {me}"]
        if superuser.info.server_version >= 160000:
            rights.insert(1, f"GRANT {', '.join(sorted(Role))} TO {me} WITH ADMIN OPTION")
        schema = [f"REVOKE CREATE ON SCHEMA public FROM PUBLIC, {', '.join(OWNED)}"]
        schema += ["GRANT USAGE, CREATE ON SCHEMA public TO farm_owner"]
        for lacking in (rights, schema):
            with pytest.raises(FarmError, match="nothing was changed; have ") as told:
                make_roles(url, passwords={}, new_passwords={})
            remedies = str(told.value).partition("again: ")[2]
            assert remedies.split("; ") == lacking
            superuser.execute(remedies.encode())
        assert make_roles(url, passwords={}, new_passwords={}).owners_before == ()
        postgres.upgrade(database.set(username=Role.OWNER).render_as_string(hide_password=False))
        assert make_roles(url, passwords={}, new_passwords={}).has_tables
        assert _granted(superuser) == _expected()


def test_a_login_that_runs_the_whole_farm_makes_the_roles_and_goes_on(
    farm: Farm, empty_database_url: str
) -> None:
    with _administrator(empty_database_url, "single", "CREATEROLE CREATEDB") as (superuser, url):
        if superuser.info.server_version >= 160000:  # as if it had made them
            them = ", ".join(Role)
            superuser.execute(f"GRANT {them} TO single WITH ADMIN OPTION, INHERIT FALSE, SET FALSE".encode())
        superuser.execute(f"ALTER DATABASE {make_url(url).database} OWNER TO single".encode())
        postgres.upgrade(url)
        for owners in (("single",), ()):
            assert make_roles(url, passwords={}, new_passwords={}).owners_before == owners
            with psycopg.connect(url.replace("+psycopg", "")) as running:
                running.execute("UPDATE verdicts SET detail = ''")
        owners = superuser.execute("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'")
        assert owners.fetchall() == [(Role.OWNER,)]


def test_tables_of_another_login_are_taken_when_the_administrator_is_its_member(
    farm: Farm, empty_database_url: str
) -> None:
    with _administrator(empty_database_url, "taker", "CREATEROLE CREATEDB") as (superuser, url):
        superuser.execute("CREATE ROLE former LOGIN")
        superuser.execute(f"GRANT {', '.join(Role)} TO taker WITH ADMIN OPTION".encode())
        superuser.execute(f"ALTER DATABASE {make_url(url).database} OWNER TO former".encode())
        postgres.upgrade(make_url(url).set(username="former").render_as_string(hide_password=False))
        with pytest.raises(FarmError, match=r"farm db roles again: GRANT former TO taker$") as told:
            make_roles(url, passwords={}, new_passwords={})
        superuser.execute(str(told.value).partition("again: ")[2].encode())
        assert make_roles(url, passwords={}, new_passwords={}).owners_before == ("former",)
