"""Bench step, checks from the queue to the verdict, beside bare Lean that checks the same in turns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from farm_workers.bench.measure import Ask, BenchProgram, programs
from farm_workers.environments.lean_environment import LeanEnvironment

from tests.bench.around.judging import Judged, judged
from tests.bench.around.site import FarmAtWork
from tests.bench.around.workers import SIMULATED, Workers, stand_ins
from tests.bench.checks import bare
from tests.bench.checks.checks import ATTEMPTS, TURN, steps_of_a_second
from tests.bench.checks.figures import Figure
from tests.bench.checks.turns import Crew, Turn
from tests.bench.long import stepwise

_SMALL, _LONG = "small programs", "checks of 1 s"
#: The share of bare Lean's checks per second that the farm as a whole has to reach.
_BARS = {_SMALL: 0.38, _LONG: 0.94}
_MOST_OVERHEAD_MS = 1.2
#: That is so much of what bare Lean takes where it makes 380 small checks a second in two threads, as it did
#: where the bar was set: on a slower machine everything takes longer.
_MOST_OVERHEAD = _MOST_OVERHEAD_MS / (2 * 1000 / 380)
#: What is left of a second at that share: both turns are as long as Lean happens to take, this is not.
_MOST_LOST_MS = 20.0
#: The numbers before it are those of the programs that warm up.
_FIRST = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """What is measured with: a farm, the environment with its header, threads for bare Lean, and how often.

    A turn of small programs takes about `turn_seconds`, one of long checks has `long_checks` for each thread.
    """

    farm: FarmAtWork
    environment: LeanEnvironment
    crew: Crew
    rounds: int
    turn_seconds: float
    long_checks: int
    say: Callable[[str], None]


def over_bare(bench: Bench, worker: Workers) -> Iterator[Figure]:
    """Yield how a real worker compares to bare Lean, and what it and the servers cost a check."""
    with contextlib.ExitStack() as kept:
        lanes = [
            kept.enter_context(bare.resident(bench.environment, bench.environment.header)).check
            for _ in range(bench.crew.lanes)
        ]
        bench.say("end to end: warming up")
        size = _size(bench, lanes)
        _judge(bench, worker, _small(bench, 0, TURN))
        small = [
            _pair(bench, worker, lanes, _small(bench, _FIRST + place * size, size), _SMALL, place)
            for place in range(bench.rounds)
        ]
        yield from _compared("small", _SMALL, small)
        yield from _overhead("small", "small programs", [farm for farm, _ in small], _MOST_OVERHEAD_MS)
        yield Figure(
            key="overhead_small_over_bare",
            name="processor time around Lean over what bare Lean takes, small programs",
            unit="",
            samples=tuple(farm.overhead_ms / _thread_ms(turn) for farm, turn in small),
            at_most=_MOST_OVERHEAD,
        )
        steps = steps_of_a_second(bench.environment.header, lanes[0])
        long = [
            _pair(bench, worker, lanes, _long(bench, place, steps), _LONG, place)
            for place in range(bench.rounds)
        ]
        yield from _compared("long", _LONG, long)
        yield Figure(
            key="lost_long",
            name="time of a thread around Lean, checks of 1 s",
            unit="ms/check",
            samples=tuple(farm.lost_ms for farm, _ in long),
            at_most=_MOST_LOST_MS,
        )


def _size(bench: Bench, lanes: Sequence[Ask]) -> int:
    """Return how many small programs take a turn, after letting bare Lean get ready."""
    bench.crew.turn(lanes, _small(bench, 0, TURN))
    warm = bench.crew.turn(lanes, _small(bench, TURN, TURN))
    return TURN * max(1, round(bench.turn_seconds * warm.per_second / TURN))


def _small(bench: Bench, first: int, how_many: int) -> list[BenchProgram]:
    return programs(bench.environment.header, first, how_many, attempts=ATTEMPTS)


def _long(bench: Bench, place: int, steps: int) -> list[BenchProgram]:
    size = bench.long_checks * bench.crew.lanes
    return [stepwise(bench.environment.header, place * size + each, steps) for each in range(size)]


def _pair(
    bench: Bench, worker: Workers, lanes: Sequence[Ask], given: Sequence[BenchProgram], what: str, place: int
) -> tuple[Judged, Turn]:
    """Let the farm and bare Lean check the same, one after the other; who is first alternates."""
    bench.say(f"end to end, {what}: round {place + 1} of {bench.rounds}")
    if place % 2:
        turn = bench.crew.turn(lanes, given)
        return _judge(bench, worker, given), turn
    return _judge(bench, worker, given), bench.crew.turn(lanes, given)


def _judge(bench: Bench, worker: Workers, given: Sequence[BenchProgram]) -> Judged:
    return judged(bench.farm, worker, bench.environment.name, given)


def _compared(key: str, what: str, pairs: Sequence[tuple[Judged, Turn]]) -> Iterator[Figure]:
    yield Figure(
        key=f"whole_{key}",
        name=f"{what} through a worker, tier kernel",
        unit="checks/s",
        samples=tuple(farm.per_second for farm, _ in pairs),
    )
    yield Figure(
        key=f"whole_{key}_bare",
        name=f"{what} through bare resident Lean",
        unit="checks/s",
        samples=tuple(_per_second(turn) for _, turn in pairs),
    )
    yield Figure(
        key=f"whole_{key}_over_bare",
        name=f"{what}, worker over bare",
        unit="",
        samples=tuple(farm.per_second / _per_second(turn) for farm, turn in pairs),
        at_least=_BARS[what],
    )


def _per_second(turn: Turn) -> float:
    """Return bare Lean's checks per second until the last one ended, as the farm's are counted.

    `Turn.per_second` leaves out that one thread waits for another's last check, which the farm's do, too.
    """
    return len(turn.checks) / max(sum(each.seconds for each in lane) for lane in turn.lanes)


def _thread_ms(turn: Turn) -> float:
    """Return for how long bare Lean keeps a thread busy with a check, in milliseconds."""
    return len(turn.lanes) * 1000 / _per_second(turn)


def _overhead(key: str, what: str, turns: Sequence[Judged], at_most: float | None = None) -> Iterator[Figure]:
    parts = {
        "worker": ("of the worker's own process", [each.each_ms(each.worker_seconds) for each in turns]),
        "postgres": ("of PostgreSQL", [each.each_ms(each.used.postgres_seconds) for each in turns]),
        "redis": ("of Redis", [each.each_ms(each.used.redis_seconds) for each in turns]),
    }
    yield Figure(
        key=f"overhead_{key}",
        name=f"processor time per check around Lean, {what}",
        unit="ms",
        samples=tuple(each.overhead_ms for each in turns),
        at_most=at_most,
    )
    for part, (words, samples) in parts.items():
        name = f"processor time per check {words}, {what}"
        yield Figure(key=f"overhead_{key}_{part}", name=name, unit="ms", samples=tuple(samples))
    yield Figure(
        key=f"transactions_{key}",
        name=f"transactions per check, {what}",
        unit="",
        samples=tuple(each.used.transactions / each.checks for each in turns),
    )


def without_lean(
    farm: FarmAtWork,
    at_once: int,
    checks: int,
    rounds: int,
    say: Callable[[str], None],
    *,
    check_seconds: float = 0.0,
) -> Iterator[Figure]:
    """Yield what a check costs without Lean: queue, claim and record, of which the engine has no part.

    A stand-in takes `check_seconds`; the longer it does, the fewer checks are claimed and recorded at once.
    """
    key, what = ("alone", "checks that do nothing")
    if check_seconds:
        key, what = ("paced", f"checks that wait for {check_seconds * 1000:.1f} ms")
    with stand_ins(farm, 1, at_once=at_once, check_seconds=check_seconds) as worker:
        turns = []
        for place in range(rounds + 1):
            say(f"{what}: round {place} of {rounds}")
            given = programs("", place * checks, checks if place else checks // 4)
            turns.append(judged(farm, worker, SIMULATED, given, truly=False))
    yield from _overhead(key, what, turns[1:])
    yield Figure(
        key=key,
        name=f"{what}, through one worker",
        unit="checks/s",
        samples=tuple(each.per_second for each in turns[1:]),
    )
