"""Bench step: contenders check the same programs in short turns, so that noise hits them all alike."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from farm_workers.bench.measure import Ask, BenchProgram, checked


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """One program that was checked, and how long that took."""

    program: BenchProgram
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """What one contender did in one turn: each lane's checks in order."""

    lanes: tuple[tuple[Checked, ...], ...]

    @property
    def checks(self) -> list[Checked]:
        """All checks of programs that end by themselves."""
        return [each for lane in self.lanes for each in lane if each.program.wall_seconds is None]

    @property
    def latencies(self) -> list[float]:
        """The seconds that these checks took."""
        return [each.seconds for each in self.checks]

    @property
    def per_second(self) -> float:
        """Checks per second of programs that end by themselves, the wall limits of the others taken out.

        It is the sum over the lanes of checks over the lane's own time, so that a lane that has run out of
        programs while another finishes its last one does not count as slow. From a lane's time its timeouts'
        limits are subtracted: over c equal lanes, T timeouts with limit L take T * L / c from the wall time.
        """
        return sum(map(_rate, self.lanes))


def _rate(lane: Sequence[Checked]) -> float:
    checks = sum(each.program.wall_seconds is None for each in lane)
    if not checks:
        return 0.0
    return checks / sum(each.seconds - (each.program.wall_seconds or 0.0) for each in lane)


class Crew:
    """Threads that last as long as the measurement, one per lane: what a thread starts may end with it."""

    def __init__(self, pool: ThreadPoolExecutor, lanes: int) -> None:
        self._pool = pool
        self.lanes = lanes

    def turn(self, checks: Sequence[Ask], programs: Sequence[BenchProgram]) -> Turn:
        """Give all programs to the lanes, each taking the next one as soon as it is free.

        Raises FarmError when a program comes out as it must not: then nothing measured would mean anything.
        """
        waiting = deque(programs)
        together = threading.Barrier(len(checks))
        under_way = [self._pool.submit(_lane, check, waiting, together) for check in checks]
        return Turn(lanes=tuple(tuple(lane.result()) for lane in under_way))

    def side_by_side(
        self,
        contenders: Mapping[str, Sequence[Ask]],
        given: Callable[[str, int], Sequence[BenchProgram]],
        rounds: int,
    ) -> dict[str, list[Turn]]:
        """Let each contender have a turn in each round, forwards and then backwards; return their turns.

        `given` makes a contender's programs for a round; those of round 0 get everybody ready.
        """
        turns: dict[str, list[Turn]] = {name: [] for name in contenders}
        for name, checks in contenders.items():
            self.turn(checks, given(name, 0))
        for number in range(1, rounds + 1):
            for name in list(contenders)[:: 1 if number % 2 else -1]:
                turns[name].append(self.turn(contenders[name], given(name, number)))
        return turns


@contextmanager
def crew(lanes: int) -> Iterator[Crew]:
    """Hire a thread per lane."""
    with ThreadPoolExecutor(lanes, thread_name_prefix="lane") as pool:
        yield Crew(pool, lanes)


def _lane(check: Ask, waiting: deque[BenchProgram], together: threading.Barrier) -> list[Checked]:
    together.wait()
    done: list[Checked] = []
    while True:
        try:
            program = waiting.popleft()
        except IndexError:
            return done
        done.append(Checked(program=program, seconds=checked(check, program)))


def ratios(ones: Sequence[Turn], others: Sequence[Turn]) -> tuple[float, ...]:
    """Return the rates of one contender over those of another, turn by turn."""
    return tuple(one.per_second / other.per_second for one, other in zip(ones, others, strict=True))
