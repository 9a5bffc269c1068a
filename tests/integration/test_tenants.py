"""Keys take turns by their weights, whatever runs each has; single proofs are stored together."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from farm.assembly.program import AssemblyOptions
from farm.errors import FarmError, OverLimit
from farm.judging.states import Priority
from farm.judging.submit_options import SubmitOptions
from farm.manifest.entry import Entry
from farm.runs.batch import Asked, Items, store_batches
from farm.store import limits
from farm.store.attempt import Claim
from farm.store.batches import Batch, ItemKey, KeyReused, Submitter
from farm.store.keys import Key
from farm.store.queries import Queries
from farm.store.transitions import Store
from farm.store.watermark import Front
from farm.store.wish import Alike
from tests.counted import calls
from tests.farms import CORE, finished, load


def key(name: str, **limits: object) -> Key:
    return Key(id=name, name=name, scopes=frozenset(), classes=frozenset(), **limits)  # type: ignore[arg-type]


A, B = key("a"), key("b")


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE])
    return store


def asked(store: Store, *names: str, image: int = 1, keys: Sequence[str] = (), **options: object) -> Asked:
    """Return a batch of theorems of these names, which need this image."""
    program = f"prelude\nimport /- {image} -/ Core\ntheorem {{}} : True := .intro"
    entries = [
        Entry(
            path="items",
            line=number,
            name=name,
            header="",
            formal_statement="",
            generation="",
            predicted_proof=program.format(name),
        )
        for number, name in enumerate(names, 1)
    ]
    chosen = {"assembly": AssemblyOptions(), "environment": "core", "priority": Priority.ONLINE, **options}
    items = Items(entries, SubmitOptions(**chosen), Queries(store.engine).served())
    taken = [
        ItemKey(key=each, sha256=entries[number - 1].predicted_proof.encode(), line=number)
        for number, each in enumerate(keys, 1)
    ]
    return Asked(items=items, keys=taken)


def stored(store: Store, by: Key, *batches: Asked) -> list[Batch | FarmError]:
    return store_batches(store, batches, Submitter(owner=by.id, key=by))


def singles(store: Store, by: Key, count: int, *, first: int = 0, **options: object) -> None:
    """Store so many batches of one item each, each in a transaction of its own."""
    for number in range(first, first + count):
        stored(store, by, asked(store, f"{by.id}{number}", **options))


def claims(store: Store, front: Front, *, most: int = 1, **more: object) -> list[Claim]:
    return store.claim(["core"], worker="w", lease_seconds=60, most=most, front=front, **more)  # type: ignore[arg-type]


def names(claimed: Sequence[Claim]) -> list[str]:
    return [claim.check.program.split("theorem ")[1].split(" ")[0] for claim in claimed]


def taken(store: Store, count: int, *, most: int = 1) -> str:
    """Return the first letters of the checks of so many claims of one worker."""
    front = Front()
    return "".join(name[0] for _ in range(count) for name in names(claims(store, front, most=most)))


class TestTurns:
    @pytest.mark.parametrize("most", [1, 4])
    def test_a_key_with_many_single_proofs_and_one_with_a_batch_get_equal_parts(
        self, store: Store, most: int
    ) -> None:
        singles(store, A, 30)
        stored(store, B, asked(store, *(f"b{number}" for number in range(30))))
        got = Counter(taken(store, 6, most=most))
        assert got == {"a": 3 * most, "b": 3 * most}

    def test_a_key_gets_as_many_times_as_much_as_its_weight(self, store: Store) -> None:
        singles(store, replace(A, weight=3), 12)
        singles(store, B, 12)
        assert Counter(taken(store, 12)) == {"a": 9, "b": 3}

    def test_runs_of_one_key_take_turns_among_themselves(self, store: Store) -> None:
        for letter in "xyz":
            stored(store, A, asked(store, *(f"{letter}{number}" for number in range(9))))
        singles(store, B, 12)
        assert Counter(taken(store, 18)) == {"x": 3, "y": 3, "z": 3, "b": 9}

    def test_a_manifest_is_of_its_login_and_takes_turns_with_keys(self, store: Store, tmp_path: Path) -> None:
        for name in "mn":
            lines = [
                {"name": f"{name}{n}", "predicted_proof": f"prelude\ntheorem {name}{n} : True := .intro"}
                for n in range(12)
            ]
            load(store, tmp_path / f"{name}.jsonl", *lines, priority=Priority.ONLINE)
        singles(store, B, 12)
        got = Counter(taken(store, 16))
        assert got == {"m": 4, "n": 4, "b": 8}

    def test_the_checks_of_one_image_take_turns_by_key_too(self, store: Store) -> None:
        singles(store, A, 12, image=2)
        singles(store, B, 12, image=2)
        front = Front()
        (first,) = claims(store, front)
        alike = Alike(
            environment="core",
            priority=first.priority,
            image=first.image,
            tenant=first.tenant,
            turn=first.turn,
        )
        got = Counter(name[0] for _ in range(9) for name in names(claims(store, front, alike=alike)))
        got[names([first])[0][0]] += 1
        assert got == {"a": 5, "b": 5}

    def test_a_check_that_is_passed_over_for_its_image_comes_next(self, store: Store) -> None:
        singles(store, A, 2, image=1)
        singles(store, B, 2, image=2)
        front = Front()
        first, second = claims(store, front, most=4), claims(store, front, most=4)
        assert {each[0] for each in names(first)} != {each[0] for each in names(second)}
        assert len(first) == len(second) == 2

    def test_a_check_for_which_a_key_waits_too_moves_to_the_head_of_its_queue(self, store: Store) -> None:
        stored(store, A, asked(store, *(f"a{number}" for number in range(30))))
        stored(store, B, asked(store, "a29"))
        assert "a29" in names(claims(store, Front(), most=2))

    def test_workers_that_claim_at_once_leave_nothing_and_claim_nothing_twice(self, store: Store) -> None:
        for by in (A, B, key("c")):
            stored(store, by, asked(store, *(f"{by.id}{number}" for number in range(40))))

        def worker(_number: int) -> list[int]:
            front, mine = Front(), list[int]()
            while some := claims(store, front, most=5):
                mine += [claim.check_id for claim in some]
            return mine

        with ThreadPoolExecutor(3) as workers:
            found = [each for mine in workers.map(worker, range(3)) for each in mine]
        assert len(found) == len(set(found)) == 120


def read_by(store: Store, step: Callable[[], object]) -> int:
    """Return how many pages of checks and of their indexes a step reads, on a connection of its own."""
    asking = text("""
        SELECT heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read + idx_tup_fetch
        FROM pg_statio_user_tables JOIN pg_stat_user_tables USING (relid)
        WHERE pg_stat_user_tables.relname = 'checks'
    """)

    def read() -> int:
        with store.engine.connect() as connection:
            connection.execute(text("SELECT pg_stat_force_next_flush()"))
            connection.commit()
            connection.execute(text("SELECT pg_stat_clear_snapshot()"))
            return int(connection.scalar(asking) or 0)

    before = read()
    step()
    return read() - before


def test_a_claim_costs_the_same_however_many_keys_and_runs_wait(store: Store) -> None:
    copies = text("""
        INSERT INTO checks SELECT (jsonb_populate_record(checks, jsonb_build_object(
            'id', nextval('checks_id_seq'), 'tenant', nth, 'turn', nth % 7, 'identity', NULL))).*
        FROM checks, generate_series(1, :more) AS nth
        WHERE checks.id = (SELECT min(id) FROM checks)
    """)
    stored(store, A, asked(store, *(f"a{number}" for number in range(30))))
    front = Front(clock=lambda: 0.0)
    costs = []
    for more in (30, 300, 3000):
        with store.engine.begin() as connection:
            connection.execute(copies, {"more": more})
        costs.append(read_by(store, lambda: [claims(store, front, most=2) for _ in range(10)]))
    assert costs[2] <= 2 * costs[0] + 100


class TestTogether:
    def test_each_has_a_run_of_its_own_and_equal_ones_share_a_check(self, store: Store) -> None:
        found = stored(store, A, *(asked(store, name) for name in ("p", "q", "p")))
        batches = [each for each in found if isinstance(each, Batch)]
        assert len({each.id for each in batches}) == 3
        assert [each.items for each in batches] == [((each.id, 1),) for each in batches]
        first, second, third = (each.checks[each.items[0]] for each in batches)
        assert first == third != second

    def test_a_bad_one_harms_no_other(self, store: Store) -> None:
        stored(store, A, asked(store, "p", keys=["k"]))
        found = stored(
            store,
            A,
            *(asked(store, name, keys=[given]) for name, given in (("q", "k"), ("r", "l"), ("s", "m"))),
        )
        assert isinstance(found[0], KeyReused)
        assert all(isinstance(each, Batch) for each in found[1:])
        with store.engine.connect() as connection:
            assert connection.scalar(text("SELECT count(*) FROM runs")) == 3

    def test_a_key_that_is_sent_twice_at_once_is_one_item(self, store: Store) -> None:
        first, second, other = stored(
            store,
            A,
            *(asked(store, name, keys=[given]) for name, given in (("p", "k"), ("p", "k"), ("q", "l"))),
        )
        assert isinstance(first, Batch)
        assert isinstance(second, Batch)
        assert isinstance(other, Batch)
        assert (first.id, first.items) == (second.id, second.items)
        assert other.id != first.id
        (again,) = stored(store, A, asked(store, "p", keys=["k"]))
        assert isinstance(again, Batch)
        assert again.items == first.items

    def test_fifty_cost_as_many_statements_as_one_but_for_their_runs(self, store: Store) -> None:
        def statements(count: int, letter: str) -> int:
            batches = [asked(store, f"{letter}{number}") for number in range(count)]
            return calls(lambda: stored(store, A, *batches))["_execute"]

        assert statements(50, "q") == statements(1, "p") + 49


class TestLimits:
    """They are the database's: each store stands for a service."""

    @pytest.fixture
    def services(self, store: Store) -> tuple[Store, Store]:
        return store, Store(store.engine)

    def test_two_services_share_one_bound_and_a_verdict_gives_room(
        self, services: tuple[Store, Store]
    ) -> None:
        one, two = services
        limited = key("a", in_flight=3)
        assert isinstance(stored(one, limited, asked(one, "p", "q"))[0], Batch)
        (over,) = stored(two, limited, asked(two, "r", "s"))
        assert isinstance(over, OverLimit)
        assert over.retry_after == 1
        assert isinstance(stored(two, limited, asked(two, "r"))[0], Batch)
        assert isinstance(stored(one, limited, asked(one, "t"))[0], OverLimit)
        assert finished(one, claims(one, Front())[0])
        _pause_is_over(one)
        assert isinstance(stored(two, limited, asked(two, "t"))[0], Batch)

    def test_services_that_submit_at_once_admit_no_more_than_the_bound(
        self, services: tuple[Store, Store]
    ) -> None:
        limited, begin = key("a", in_flight=7), threading.Barrier(4)

        def submit(number: int) -> int:
            begin.wait(60)
            found = [
                stored(services[number % 2], limited, asked(services[0], f"p{number}x{nth}"))[0]
                for nth in range(5)
            ]
            return sum(isinstance(each, Batch) for each in found)

        with ThreadPoolExecutor(4) as threads:
            assert sum(threads.map(submit, range(4))) == 7

    def test_only_those_that_exceed_the_bound_are_kept_out(self, store: Store) -> None:
        found = stored(store, key("a", in_flight=2), *(asked(store, name) for name in "pqrs"))
        assert [isinstance(each, Batch) for each in found] == [True, True, False, False]
        with store.engine.connect() as connection:
            assert connection.scalar(text("SELECT count(*) FROM runs")) == 2

    def test_what_is_sent_again_under_its_key_is_counted_once(self, store: Store) -> None:
        limited = key("a", in_flight=1)
        first, again = (stored(store, limited, asked(store, "p", keys=["k"]))[0] for _ in range(2))
        assert isinstance(first, Batch)
        assert isinstance(again, Batch)
        assert first.items == again.items

    def test_a_rate_is_one_of_all_services(self, services: tuple[Store, Store]) -> None:
        one, two = services
        limited = key("a", per_second=0.001)
        assert isinstance(stored(one, limited, asked(one, "p"))[0], Batch)
        (over,) = stored(two, limited, asked(two, "q"))
        assert isinstance(over, OverLimit)
        assert over.retry_after is not None
        assert 900 < over.retry_after <= 1000

    def test_a_batch_that_never_fits_says_how_many_would(self, store: Store) -> None:
        (over,) = stored(store, key("a", in_flight=2), asked(store, "p", "q", "r"))
        assert isinstance(over, OverLimit)
        assert (over.retry_after, over.most) == (None, 2)

    def test_a_step_counts_until_it_ends_or_its_service_no_longer_renews_it(self, store: Store) -> None:
        limited = key("a", in_flight=1)
        for end in (lambda: limits.end_step(store.engine, "step"), lambda: _expire(store)):
            limits.begin_step(store.engine, limited, "step")
            with pytest.raises(OverLimit):
                limits.begin_step(store.engine, limited, "another")
            limits.renew_step(store.engine, "step")
            assert isinstance(stored(store, limited, asked(store, "p"))[0], OverLimit)
            end()
            _pause_is_over(store)
            limits.require_room(store.engine, limited, 1)


def _expire(store: Store) -> None:
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE unfinished SET expires_at = now() - interval '1 second'"))


def _pause_is_over(store: Store) -> None:
    """Have unfinished proofs counted again at once, although they were a moment ago."""
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE key_uses SET full_until = NULL"))
