"""What a person sees of the whole farm, made of plain facts."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from farm.cli import live_tables
from farm.judging.states import Priority
from farm.sessions.wire import Beat
from farm.store.overview import AtWork, Queue
from farm.store.workers import State, Worker

WELL = Worker(
    name="node1:1",
    node="node1",
    pid=1,
    environments=[{"name": "core", "toolchain": "Lean 4.35.0", "digest": "d", "tiers": ["kernel", "lean"]}],
    isolation="bwrap",
    farm_version="1",
    threads=4,
    busy=2,
    state=State.SERVING,
    lease_seconds=20.0,
    age_seconds=3700.0,
    silent_seconds=2.0,
)
HELD = AtWork(
    worker="node1:1",
    check_id=7,
    attempt=1,
    environment="core",
    seconds=61.0,
    run_id="run1",
    line=3,
    name="thm",
)
QUEUE = Queue(environment="core", priority=Priority.ONLINE, tier="kernel", waiting=3, oldest_seconds=5.0)


def shown(renderable: object, *, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(renderable)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def picture(
    workers: Sequence[Worker], *held: AtWork, queues: Sequence[Queue] = (), sessions: Beat | None = None
) -> str:
    at_work = live_tables.by_worker(held)
    return shown(
        live_tables.top(
            minute={}, minutes={}, queues=queues, workers=workers, sessions=sessions, at_work=at_work
        )
    )


def test_sessions_are_shown_where_there_are_some() -> None:
    beat: Beat = {"sessions": 3, "steps": 64, "killed": 0}
    assert "3 sessions: 64 tactics in the last second\n" in picture([], sessions=beat)
    assert "64 tactics in the last second, 2 killed" in picture([], sessions={**beat, "killed": 2})
    assert "session" not in picture([], sessions={**beat, "sessions": 0})


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1.0, "0 s"),
        (0.9, "0 s"),
        (59.9, "59 s"),
        (60.0, "1 min"),
        (200.0, "3 min 20 s"),
        (3600.0, "1 h"),
        (3660.0, "1 h 1 min"),
        (90000.0, "1 d 1 h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, words: str) -> None:
    assert live_tables.duration(seconds) == words


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ([], ""),
        ([HELD], "run1:3 thm, 1 min 1 s"),
        ([HELD, HELD, HELD], "run1:3 thm, 1 min 1 s and 2 more"),
        ([replace(HELD, run_id=None, line=None, name=None)], "check 7, 1 min 1 s"),
        ([replace(HELD, name="x" * 100)], f"run1:3 {'x' * 40}, 1 min 1 s"),
    ],
)
def test_what_a_worker_is_at_is_its_longest_check_and_how_many_more(held: list[AtWork], words: str) -> None:
    assert live_tables.at_work_words(held) == words


def test_a_worker_that_takes_nothing_has_a_remedy_and_others_have_none() -> None:
    silent = replace(WELL, name="silent", silent_seconds=21.0)
    unwell = replace(WELL, name="unwell", state=State.UNWELL)
    stopping = replace(WELL, name="stopping", state=State.STOPPING)
    told = list(live_tables.remedies([WELL, silent, unwell, stopping]))
    assert [words.split()[0] for words in told] == ["silent", "unwell"]
    assert "21 s, longer than its lease of 20 s" in told[0]
    assert "farm doctor" in told[1]


def test_all_workers_that_are_silent_have_one_sentence() -> None:
    killed = [replace(WELL, name=f"node:{number}", silent_seconds=30.0) for number in range(40)]
    (told,) = live_tables.remedies([WELL, *killed])
    assert told.startswith("node:0, node:1, node:2 and 37 more have been silent")
    assert "no longer listed after 1 h" in told


def test_markup_in_a_workers_words_is_shown_as_it_is() -> None:
    odd = [{"name": "[bold]e", "toolchain": "[/]", "digest": "", "tiers": []}]
    said = shown(
        live_tables.workers_table([replace(WELL, name="[red]n", isolation="[i]", environments=odd)], {})
    )
    assert all(words in said for words in ("[red]n", "[i]", "[bold]e ([/])"))


def test_the_picture_shows_first_what_is_not_well_then_the_longest_check() -> None:
    many = [replace(WELL, name=f"w{number:02}") for number in range(40)]
    many[35] = replace(many[35], silent_seconds=100.0)
    many[36] = replace(many[36], state=State.UNWELL)
    said = picture(many, replace(HELD, worker="w37"))
    places = [said.index(name) for name in ("w35", "w36", "w37", "w00")]
    assert places == sorted(places)
    assert "w34" not in said
    assert f"and {40 - live_tables.MOST_SHOWN} more: farm status --workers" in said


def test_workers_that_were_killed_do_not_fill_the_picture() -> None:
    killed = [replace(WELL, name=f"k{number:02}", silent_seconds=100.0) for number in range(40)]
    said = picture([*killed, replace(WELL, name="live")])
    assert "live" in said
    assert said.count("silent") == 3
    assert "and 37 more: farm status --workers" in said


def test_the_picture_counts_the_threads_of_workers_that_are_heard_of() -> None:
    said = picture([WELL, replace(WELL, name="other", silent_seconds=100.0)])
    assert "2 of 4 threads busy" in said
    assert "nothing decided" in said
    assert "Nothing waits." in said


def test_a_queue_that_was_not_counted_to_its_end_says_so_and_names_who_counts_it() -> None:
    whole, cut = picture([WELL], queues=[QUEUE]), picture([WELL], queues=[replace(QUEUE, is_cut=True)])
    assert " 3 " in whole
    assert "farm status" not in whole
    assert " 3+ " in cut
    assert "also of other tiers, may wait behind them. To count all: farm status" in cut


def test_the_rate_is_that_of_the_minute_and_the_shares_those_of_five() -> None:
    said = shown(
        live_tables.top(
            sessions=None,
            minute={"proved": 60, "rejected": 60},
            minutes={"proved": 150, "timeout": 50},
            queues=[],
            workers=[],
            at_work={},
        )
    )
    assert "2.0 checks/s over the last minute" in said
    assert "proved 50.0%, rejected 50.0%" in said
    assert "timeouts 25.0%, judge errors 0.0%" in said
    assert "There are no workers" in said


def test_a_narrow_terminal_cuts_no_name_of_a_worker() -> None:
    name = "gpu-node-17.cluster.example:48211"
    said = shown(live_tables.workers_table([replace(WELL, name=name)], {name: [HELD]}), width=80)
    column = [row.split("│")[1].strip() for row in said.splitlines() if "│" in row]
    assert "".join(column) == name
