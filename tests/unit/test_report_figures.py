"""The figures of a report, made by hand: what counts, what is unknown, and over how many problems."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from farm.reports import svg, words
from farm.reports.comparison import compare
from farm.reports.figures import Figures, PassAt, figures
from farm.reports.pools import LinePool
from farm.reports.reading import Field, shown
from farm.reports.statistics import pass_at_k
from farm.store.outcomes import LineOutcome
from tests.evaluations import JUDGE_ERROR, PROVED, REJECTED, TIMEOUT, Given

MEMORY = Given(verdict="memory_limit", reason="memory_limit")
WAITS, CANCELLED = "queued", "cancelled"
#: Cancelled, for another line of its group is proved.
STOPPED = "stopped"

#: A line's verdict, or its status without one.
Line = Given | str


def outcome(line: Line, *, shared: bool = False) -> LineOutcome:
    """Return what the store tells of a line."""
    given = line if isinstance(line, Given) else None
    return LineOutcome(
        manifest=0,
        line=1,
        name="t",
        group=None,
        status="done" if given else CANCELLED if line == STOPPED else str(line),
        stopped=line == STOPPED,
        shared=shared,
        wall_limit=30.0,
        cpu_limit=60.0,
        memory_limit_mib=4096,
        verdict=given and given.verdict,
        reason=given and given.reason,
        wall_seconds=given and given.wall_seconds,
        cpu_seconds=given and given.cpu_seconds,
        peak_memory_kib=given and given.peak_memory_kib,
        error_kind=None,
    )


def pool(*problems: Iterable[Line]) -> LinePool:
    """Return a pool of problems, each with its lines."""
    made = LinePool()
    for number, lines in enumerate(problems):
        for line in lines:
            made.add(number, outcome(line))
    return made


def told(*problems: Iterable[Line]) -> Figures:
    return figures(pool(*problems), [f"p{number}" for number in range(len(problems))])


def at(found: Figures, k: int) -> PassAt:
    there = found.at(k)
    assert there is not None
    return there


def test_pass_at_k_is_the_mean_over_problems_not_over_lines() -> None:
    found = told([PROVED] * 8, [REJECTED, REJECTED])
    assert at(found, 1).value == pytest.approx(0.5)
    assert found.proved_share == pytest.approx(0.8)


def test_problems_with_too_few_samples_are_left_out_and_counted() -> None:
    found = told([PROVED, REJECTED, REJECTED, REJECTED], [REJECTED, REJECTED], [PROVED])
    assert [(each.k, each.problems, each.problems_with_samples) for each in found.pass_at] == [
        (1, 3, 3),
        (2, 2, 2),
        (4, 1, 1),
    ]
    assert at(found, 2).value == pytest.approx((pass_at_k(4, 1, 2) + 0) / 2)
    assert (found.samples_least, found.samples_most) == (1, 4)
    assert words.of_problems(found, at(found, 4)) == "1 of 3"
    assert "pass@4 leaves out 2 of 3" in words.left_out(found)


@pytest.mark.parametrize("unknown", [JUDGE_ERROR, WAITS, CANCELLED, "running"])
def test_what_is_unknown_is_neither_a_failure_nor_a_proof(unknown: Line) -> None:
    found = told([PROVED, REJECTED, unknown, unknown], [REJECTED, REJECTED, REJECTED, unknown])
    first = at(found, 1)
    assert first.value == pytest.approx((1 / 2 + 0) / 2)
    assert first.at_least == pytest.approx((1 / 4 + 0) / 2)
    assert first.at_most == pytest.approx((3 / 4 + 1 / 4) / 2)
    assert (found.judged, found.unknown.lines, found.lines) == (5, 3, 8)
    assert (found.proved_share, found.proved_at_least, found.proved_at_most) == (1 / 5, 1 / 8, 4 / 8)
    assert (found.solved, found.undecided) == (1, 1)


def test_a_problem_without_a_judged_line_is_in_the_bounds_alone() -> None:
    found = told([PROVED], [JUDGE_ERROR])
    first = at(found, 1)
    assert (first.problems, first.value) == (1, 1.0)
    assert (first.problems_with_samples, first.at_least, first.at_most) == (2, 0.5, 1.0)


def test_nothing_judged_has_no_estimate() -> None:
    found = told([WAITS], [CANCELLED])
    first = at(found, 1)
    assert (first.value, first.low, first.problems) == (None, None, 0)
    assert (first.at_least, first.at_most) == (0.0, 1.0)
    assert found.proved_share is None
    assert found.costs.cpu_seconds_per_proof is None
    assert words.percent(first.value) == "–"


#: A run of 100 problems that stops on the first proof: the first sample of 60 problems is one.
SIXTY_STOPPED = [*[[PROVED, *[STOPPED] * 7]] * 60, *[[REJECTED] * 8] * 40]


def test_where_a_proof_stops_the_rest_only_what_is_known_is_told() -> None:
    found = told(*SIXTY_STOPPED)
    assert [(each.k, each.value, each.problems) for each in found.pass_at] == [
        (1, pytest.approx(0.6), 100),
        (2, None, 0),
        (4, None, 0),
        (8, pytest.approx(0.6), 100),
    ]
    last = at(found, 8)
    assert (last.at_least, last.at_most) == (pytest.approx(0.6), pytest.approx(0.6))
    assert words.left_out(found) == ""


def test_a_problem_that_a_proof_stopped_late_is_no_fair_draw_either() -> None:
    found = told([REJECTED, REJECTED, REJECTED, PROVED, *[STOPPED] * 4], [REJECTED] * 8)
    assert [each.value for each in found.pass_at] == [pytest.approx(1 / 8), None, None, pytest.approx(0.5)]


def test_a_run_that_stops_on_proofs_and_is_not_over_tells_no_more() -> None:
    found = told([PROVED, *[STOPPED] * 7], [*[REJECTED] * 7, PROVED], [REJECTED, *[WAITS] * 7])
    assert [each.value is None for each in found.pass_at] == [False, True, True, True]


def test_what_unknown_samples_cannot_change_counts() -> None:
    found = told([REJECTED, REJECTED], [PROVED, WAITS])
    second = at(found, 2)
    assert (second.value, second.at_least, second.at_most, second.problems) == (0.5, 0.5, 0.5, 2)


def test_solved_problems_are_not_the_only_ones_counted_of_a_run_that_is_not_over() -> None:
    half = [*[[PROVED, WAITS]] * 5, *[[REJECTED, WAITS]] * 5]
    assert at(told(*half), 2).value is None
    found = at(told(*half, [PROVED, REJECTED], [REJECTED, REJECTED]), 2)
    assert (found.value, found.problems) == (0.5, 2)


def test_an_estimate_that_the_bounds_refute_is_not_told() -> None:
    found = at(told([REJECTED, REJECTED], [PROVED, WAITS], [REJECTED, WAITS]), 2)
    assert (found.value, found.low, found.at_least) == (None, None, pytest.approx(1 / 3))


def test_timeouts_are_told_as_all_samples_and_as_a_mean_share() -> None:
    found = told([TIMEOUT] * 4, [TIMEOUT, REJECTED, REJECTED, PROVED], [PROVED] * 4, [JUDGE_ERROR] * 4)
    assert found.timeouts.lines == 5
    assert found.timeouts.problems == 3
    assert found.timeouts.all_samples == pytest.approx(1 / 3)
    assert found.timeouts.mean_share == pytest.approx((1 + 1 / 4 + 0) / 3)
    assert at(found, 4).all_timed_out == pytest.approx(1 / 3)
    assert at(found, 1).all_timed_out == pytest.approx(found.timeouts.mean_share)


def test_each_limit_says_what_it_ended_and_which_proofs_came_near() -> None:
    quick, late = Given(wall_seconds=1.0), Given(wall_seconds=29.0, cpu_seconds=31.0)
    cpu = Given(verdict="timeout", reason="cpu_limit")
    found = told([quick, quick, late, REJECTED], [TIMEOUT, TIMEOUT, MEMORY, cpu])
    wall, by_cpu, *_, memory, _ = found.limits
    assert (wall.limit, wall.ended, by_cpu.ended, memory.limit, memory.ended) == ("wall", 2, 1, "memory", 1)
    assert wall.proved_tenths == (2, 0, 0, 0, 0, 0, 0, 0, 0, 1)
    assert (wall.proofs_above_half, wall.proofs_above_four_fifths) == (1, 1)
    assert (by_cpu.proofs_above_half, by_cpu.proofs_above_four_fifths) == (1, 0)
    assert "about 2 more" in words.longer(found)


CPU_LIMIT = Given(verdict="timeout", reason="cpu_limit", wall_seconds=20.0, cpu_seconds=60.0)
KERNEL_TIME = Given(verdict="timeout", reason="kernel_time")


def test_without_a_line_that_a_limit_of_time_ended_a_longer_one_changes_nothing() -> None:
    assert "would change nothing" in words.longer(told([PROVED, REJECTED, MEMORY]))
    assert "few more" in words.longer(told([PROVED, TIMEOUT]))
    assert "Without a proof it is unknown" in words.longer(told([REJECTED, TIMEOUT]))


def test_each_limit_of_time_that_ended_lines_is_named() -> None:
    said = words.longer(told([PROVED] * 5, [KERNEL_TIME] * 50, [CPU_LIMIT] * 30))
    assert "processor time 30, audit and kernel 50." in said
    assert "four fifths of the limit: processor time 0. Longer limits would probably find few more." in said
    assert "Lean accepted those whose audit and kernel took too long" in said


def test_lines_that_only_audit_and_kernel_ended_are_accepted_by_lean() -> None:
    said = words.longer(told([REJECTED, KERNEL_TIME]))
    assert said.startswith("Lines that ran into a time limit: audit and kernel 1. Lean accepted")
    assert "Without a proof it is unknown" not in said


def test_proofs_near_the_limit_of_processor_time_say_that_a_longer_one_helps() -> None:
    late = Given(wall_seconds=5.0, cpu_seconds=55.0)
    assert "about 5 more" in words.longer(told([late, PROVED], [CPU_LIMIT] * 8))


def test_a_shared_check_is_paid_for_once() -> None:
    made = LinePool()
    for shared in (False, True, True):
        made.add(0, outcome(Given(cpu_seconds=6.0), shared=shared))
    found = figures(made, ["p"]).costs
    assert (found.cpu_seconds, found.shared_lines, found.cpu_seconds_per_proof) == (6.0, 2, 2.0)
    assert [(each.lines, each.checked, each.mean_cpu_seconds) for each in found.by_verdict] == [(3, 1, 6.0)]


def test_the_slowest_problems_come_first() -> None:
    slow, quick = Given(wall_seconds=9.0), Given(wall_seconds=0.1)
    found = told([quick, quick], [slow, quick], [slow, slow], [WAITS]).slowest
    assert [each.problem for each in found] == ["p2", "p1", "p0"]
    assert (found[1].mean_seconds, found[1].longest_seconds) == (pytest.approx(4.55), 9.0)


def test_problems_that_flipped_are_told_unless_something_is_unknown() -> None:
    here = pool([PROVED], [REJECTED], [PROVED], [REJECTED], [REJECTED, WAITS], [PROVED])
    there = pool([PROVED], [PROVED], [REJECTED], [REJECTED], [PROVED], [JUDGE_ERROR])
    found = compare(here, there, [f"p{number}" for number in range(6)], run="r")
    assert found is not None
    assert (found.gained, found.lost) == (("p2",), ("p1",))
    assert (found.both_solved, found.neither_solved, found.undecided) == (1, 1, 2)


def test_runs_are_compared_over_their_common_problems() -> None:
    here, there = LinePool(), LinePool()
    for number in range(24):
        here.add(number, outcome(PROVED if number < 18 else REJECTED))
        there.add(number + 4, outcome(PROVED if number < 6 else REJECTED))
    found = compare(here, there, [f"p{number}" for number in range(28)], run="r")
    assert found is not None
    assert (found.problems, found.only_here, found.only_there) == (20, 4, 4)
    (first,) = found.pass_at
    assert (first.value, first.against) == (pytest.approx(0.7), pytest.approx(0.3))
    assert first.low is not None
    assert first.high is not None
    assert first.low < first.difference < first.high
    assert first.difference == pytest.approx(0.4)
    assert words.verdict_of(first) == "better"


@pytest.mark.parametrize(("gained", "problems"), [(1, 1), (3, 5), (19, 19)])
def test_nothing_is_better_for_few_problems(gained: int, problems: int) -> None:
    same = [[REJECTED]] * (problems - gained)
    here, there = pool(*[[PROVED]] * gained, *same), pool(*[[REJECTED]] * gained, *same)
    found = compare(here, there, [f"p{number}" for number in range(problems)], run="r")
    assert found is not None
    (first,) = found.pass_at
    assert (words.verdict_of(first), first.differs, first.low, first.high) == (
        *("too few problems", False),
        *(None, None),
    )
    assert words.points_interval(first.low, first.high) == "–"


def test_a_change_of_everything_in_enough_problems_is_better() -> None:
    found = compare(pool(*[[PROVED]] * 20), pool(*[[REJECTED]] * 20), [str(n) for n in range(20)], run="r")
    assert found is not None
    assert [words.verdict_of(each) for each in found.pass_at] == ["better"]


def test_a_run_that_stops_on_proofs_is_compared_only_where_its_pass_at_k_is_known() -> None:
    names = [f"p{number}" for number in range(100)]
    whole = [*[[PROVED, *[REJECTED] * 7]] * 60, *[[REJECTED] * 8] * 40]
    for here, there in ((SIXTY_STOPPED, whole), (whole, SIXTY_STOPPED), (SIXTY_STOPPED, SIXTY_STOPPED)):
        found = compare(pool(*here), pool(*there), names, run="r")
        assert found is not None
        (last,) = found.pass_at
        assert (last.k, last.problems, last.difference) == (8, 100, pytest.approx(0))
        assert not last.differs


def test_runs_are_compared_where_unknown_samples_cannot_change_it() -> None:
    here, there = pool([PROVED, WAITS], [REJECTED, REJECTED]), pool([PROVED, PROVED], [REJECTED, REJECTED])
    found = compare(here, there, ["a", "b"], run="r")
    assert found is not None
    assert [(each.k, each.problems, each.difference) for each in found.pass_at] == [(1, 2, 0), (2, 2, 0)]


def test_runs_without_a_common_problem_are_not_compared() -> None:
    here, there = LinePool(), LinePool()
    here.add(0, outcome(PROVED))
    there.add(1, outcome(PROVED))
    assert compare(here, there, ["a", "b"], run="r") is None


def test_a_pair_without_a_judged_line_has_no_difference() -> None:
    found = compare(pool([WAITS]), pool([PROVED]), ["a"], run="r")
    assert found is not None
    assert (found.pass_at, found.undecided) == ((), 1)
    assert "no k" in words.left_uncompared(found)


# fields of manifests


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"d": "hard"}', "hard"),
        (b'{"d": 3}\r\n', "3"),
        (b'{"d": 0.5}', "0.5"),
        (b'{"d": null}', "null"),
        (b'{"d": true}', "true"),
        (b'{"d": {"b": 1, "a": ["\xc3\xa9"]}}', '{"a": ["é"], "b": 1}'),
        (b'{"e": 1}', None),
        (b'{"d": 1, "d": "last"}', "last"),
    ],
)
def test_a_value_is_a_text_or_json(line: bytes, value: str | None) -> None:
    assert Field("d").value(line) == value


def test_a_number_of_any_length_is_a_value() -> None:
    value = Field("d").value(b'{"d": ' + b"9" * 10_000 + b"}")
    assert value is not None
    assert value.startswith("999")


def test_long_values_stay_different() -> None:
    assert shown("x" * 5000) != shown("x" * 5000 + "y")
    assert len(shown("x" * 5000)) < 200


def test_the_fields_that_there_are_are_remembered_until_one_is_found() -> None:
    field = Field("d")
    field.value(b'{"a": 1, "b": 2}')
    assert (field.is_found, list(field.others)) == (False, ["a", "b"])


# words and plots


def test_what_is_nearly_all_or_nothing_is_not_rounded_to_it() -> None:
    assert [words.percent(share) for share in (0, 0.0001, 0.5, 0.99999, 1)] == [
        *("0.0%", "<0.1%", "50.0%"),
        *(">99.9%", "100.0%"),
    ]
    assert [words.points(share) for share in (0.051, -0.2, 0.0001)] == ["+5.1", "−20.0", "±0.0"]
    assert [words.seconds(number) for number in (0.0, 0.02, 5, 59, 300, 90_000, 1e6)] == [
        *("0.00 s", "20 ms", "5.00 s", "59 s", "5.0 min"),
        *("25.0 h", "11.6 d"),
    ]


def test_names_are_shown_without_what_a_terminal_obeys() -> None:
    assert words.name("a\x1b[31m\u202eb\ud800") == "a\\x1b[31m\\u202eb\\ud800"
    assert words.name("") == "(empty)"


def test_a_plot_holds_hostile_names_as_text() -> None:
    name = '"><script>1</script>&'
    point = svg.Point(name=name, value=0.5, low=0.4, high=0.6)
    drawn = svg.rows([point], svg.Caption(key="k", title=name, description=name))
    assert "<script" not in drawn
    assert "&lt;script" in drawn


@pytest.mark.parametrize("highest", [0.0, 0.001, 0.03, 0.2, 0.5, 0.97, 1.0])
def test_ticks_are_few_and_reach_what_is_shown(highest: float) -> None:
    ticks = svg.ticks_to(highest)
    assert ticks[0] == 0
    assert ticks[-1] >= highest
    assert 2 <= len(ticks) <= 6


@pytest.mark.parametrize("highest", [1, 3, 7, 10, 99, 100, 4013, 123_456])
def test_ticks_of_numbers_are_whole_few_and_reach_what_is_shown(highest: int) -> None:
    ticks = svg.whole_ticks_to(highest)
    assert ticks[0] == 0
    assert highest <= ticks[-1] < 3 * highest
    assert len(set(ticks)) == len(ticks) <= 6
