"""Report step: counts lines into pools, each with its problems, its cost and its use of limits."""

from __future__ import annotations

from collections import Counter

from farm.judging.verdict import Outcome as Verdict
from farm.store.outcomes import LineOutcome

#: By how many parts of a limit the lines that kept it are counted.
PARTS = 10

_UNKNOWN, _PROVED, _TIMEOUT = Verdict.JUDGE_ERROR.value, Verdict.PROVED.value, Verdict.TIMEOUT.value
_DISPROVED = Verdict.DISPROVED.value
#: Those that came to their own end.
_ENDED = frozenset({Verdict.PROVED.value, Verdict.REJECTED.value})


class Samples:
    """The samples of one problem.

    `judged` lines have a verdict on their proof, `unknown` ones have not: they are unfinished, were
    cancelled, or could not be judged. It is `stopped` when a proof cancelled lines. Seconds are those of the
    judged ones; `cpu_seconds` are of checks of their own.
    """

    __slots__ = (
        *("cpu_seconds", "disproved", "judged", "longest", "proved", "seconds", "stopped"),
        *("timeouts", "unknown"),
    )

    def __init__(self) -> None:
        self.judged = self.proved = self.disproved = self.unknown = self.timeouts = 0
        self.stopped = False
        self.seconds = self.longest = self.cpu_seconds = 0.0

    @property
    def is_solved(self) -> bool:
        """Whether one of the lines is proved."""
        return self.proved > 0

    @property
    def is_unsolved(self) -> bool:
        """Whether all lines are judged, and none is proved."""
        return not self.proved and not self.unknown


class Cost:
    """The cost of lines of one verdict and reason: `own_lines` had checks of their own."""

    __slots__ = ("cpu_seconds", "lines", "own_lines", "wall_seconds")

    def __init__(self) -> None:
        self.lines = self.own_lines = 0
        self.cpu_seconds = self.wall_seconds = 0.0


class Use:
    """How many lines used which part of their limits, by wall time, processor time and memory."""

    __slots__ = ("cpu", "memory", "wall")

    def __init__(self) -> None:
        self.wall, self.cpu, self.memory = [0] * PARTS, [0] * PARTS, [0] * PARTS


class LinePool:
    """Lines that are reported together."""

    def __init__(self) -> None:
        self.lines = 0
        self.statuses: Counter[str] = Counter()
        self.costs: dict[tuple[str, str], Cost] = {}
        self.problems: dict[int, Samples] = {}
        self.use = {verdict: Use() for verdict in _ENDED}

    def add(self, problem: int, line: LineOutcome) -> None:
        """Count a line of this problem."""
        self.lines += 1
        samples = self.problems.get(problem)
        if samples is None:
            samples = self.problems[problem] = Samples()
        verdict = line.verdict
        if verdict is None:
            self.statuses[line.status] += 1
            samples.unknown += 1
            samples.stopped |= line.stopped
            return
        self._pay(line, samples)
        if verdict == _UNKNOWN:
            samples.unknown += 1
            return
        wall = line.wall_seconds or 0.0
        samples.judged += 1
        samples.proved += verdict == _PROVED
        samples.disproved += verdict == _DISPROVED
        samples.timeouts += verdict == _TIMEOUT
        samples.seconds += wall
        if wall > samples.longest:
            samples.longest = wall
        if verdict in _ENDED:
            self._note_use(line, self.use[verdict])

    def _pay(self, line: LineOutcome, samples: Samples) -> None:
        kind = line.verdict or "", line.reason or ""
        cost = self.costs.get(kind)
        if cost is None:
            cost = self.costs[kind] = Cost()
        cost.lines += 1
        if not line.shared:
            seconds = line.cpu_seconds or 0.0
            cost.own_lines += 1
            cost.cpu_seconds += seconds
            cost.wall_seconds += line.wall_seconds or 0.0
            samples.cpu_seconds += seconds

    def _note_use(self, line: LineOutcome, use: Use) -> None:
        wall = int(PARTS * (line.wall_seconds or 0.0) / line.wall_limit)
        cpu = int(PARTS * (line.cpu_seconds or 0.0) / line.cpu_limit)
        memory = PARTS * (line.peak_memory_kib or 0) // (line.memory_limit_mib * 1024)
        # A process may exceed its limit a little before it is killed: it counts in the last part.
        use.wall[wall if wall < PARTS else -1] += 1
        use.cpu[cpu if cpu < PARTS else -1] += 1
        use.memory[memory if memory < PARTS else -1] += 1
