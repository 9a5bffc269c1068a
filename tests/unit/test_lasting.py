"""A search's session is opened again when the farm lost it, and no failure of the farm is one of a tactic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from farm.client.results import Result
from farm.client.states import State, Step
from farm.errors import QueueFull, ServerDown, UnknownRun
from farm.search import lasting
from farm.search.best_first import Search
from farm.search.lasting import Lasting
from farm.search.manifest import sealed
from farm.search.provers import Suggestion

ROOT = State(id="root", root=0, tactics=(), goals=("⊢ p",))
#: Tactics that each lead on; `c` leaves no goal.
_TACTICS = ("a", "b", "c")


class Fake:
    """A session whose states are paths such as ``root/a/b``; `troubles` are met by the calls in turn."""

    def __init__(self, troubles: list[Exception | str | None]) -> None:
        self.root = ROOT
        self.troubles = troubles
        self.kept = {ROOT.id}
        self.is_closed = False

    def step(
        self, state: str, tactics: Sequence[str], *, seconds: float, heartbeats: int | None
    ) -> list[Step]:
        trouble = self.troubles.pop(0) if self.troubles else None
        if isinstance(trouble, Exception):
            raise trouble
        if state not in self.kept:
            raise UnknownRun("the session has no state")
        if trouble is not None:
            return [Step(tactic=each, outcome=trouble) for each in tactics]
        return [self._stepped(state, each) for each in tactics]

    def _stepped(self, state: str, tactic: str) -> Step:
        if tactic not in _TACTICS:
            return Step(tactic=tactic, outcome="error")
        self.kept.add(f"{state}/{tactic}")
        outcome = "no_goals" if tactic == "c" else "goals"
        return Step(tactic=tactic, outcome=outcome, state=f"{state}/{tactic}", goals=(f"{state}/{tactic}",))

    def prove(self, state: str, /) -> Result:
        trouble = self.troubles.pop(0) if self.troubles else None
        if isinstance(trouble, Exception):
            raise trouble
        if state not in self.kept:
            raise UnknownRun("the session has no state")
        return Result(index=0, verdict=None if trouble == "waits" else trouble or "proved")  # type: ignore[arg-type]

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lasting, "_FIRST_SECONDS", 0.0)


def opening(*troubles: list[Exception | str | None]) -> tuple[list[Fake], Callable[[], Fake]]:
    """Return the sessions that were opened, and what opens the next one, with its own troubles."""
    opened: list[Fake] = []
    left = list(troubles)

    def open_() -> Fake:
        opened.append(Fake(left.pop(0) if left else []))
        return opened[-1]

    return opened, open_


def outcomes(session: Lasting, state: str, *tactics: str) -> list[str]:
    return [each.outcome for each in session.step(state, tactics, seconds=1.0, heartbeats=None)]


def test_a_lost_session_is_opened_again_and_its_state_is_made_from_its_tactics() -> None:
    opened, open_ = opening([None, None, UnknownRun("no session")])
    session = Lasting(open_)
    assert outcomes(session, "root", "a") == ["goals"]
    assert outcomes(session, "root/a", "b", "wrong") == ["goals", "error"]
    assert outcomes(session, "root/a/b", "c", "wrong") == ["no_goals", "error"]
    assert len(opened) == 2
    assert opened[1].kept == {"root", "root/a", "root/a/b", "root/a/b/c"}
    assert session.prove("root/a/b/c").verdict == "proved"


def test_states_that_another_session_kept_are_made_again_without_a_third_one() -> None:
    opened, open_ = opening([None, UnknownRun("no session")])
    session = Lasting(open_)
    outcomes(session, "root", "a", "b")
    outcomes(session, "root/a", "a")
    assert outcomes(session, "root/b", "c") == ["no_goals"]
    assert len(opened) == 2


def test_what_the_farm_cannot_do_now_is_repeated() -> None:
    opened, open_ = opening([ServerDown("away"), QueueFull("full"), None, ServerDown("away")])
    session = Lasting(open_)
    assert outcomes(session, "root", "c") == ["no_goals"]
    assert session.prove("root/c").verdict == "proved"
    assert len(opened) == 1


@pytest.mark.parametrize("ended", ["crashed", "lost"])
def test_a_tactic_whose_process_ended_is_tried_again(ended: str) -> None:
    _, open_ = opening([ended, ended])
    assert outcomes(Lasting(open_), "root", "a", "wrong") == ["goals", "error"]


def test_a_tactic_that_ends_its_process_each_time_has_crashed() -> None:
    _, open_ = opening(["crashed"] * 4)
    assert outcomes(Lasting(open_), "root", "a") == ["crashed"]


def test_a_state_that_stays_lost_is_a_failure_of_the_farm() -> None:
    _, open_ = opening(["lost"] * 100)
    with pytest.raises(ServerDown, match="cannot be made again"):
        outcomes(Lasting(open_, patience_seconds=0.0), "root", "a")


@pytest.mark.parametrize("trouble", ["judge_error", "waits", ServerDown("away"), UnknownRun("no session")])
def test_a_proof_that_the_farm_failed_to_judge_is_not_refused(trouble: Exception | str) -> None:
    _, open_ = opening([None, trouble])
    session = Lasting(open_)
    suggested = [Suggestion("c"), Suggestion("a")]
    found, verdict = sealed(session, Search(session, lambda _goals: suggested))
    assert (found.tactics, verdict and verdict.verdict) == (("c",), "proved")


def test_a_farm_that_fails_for_too_long_is_an_error_and_no_answer() -> None:
    _, open_ = opening([ServerDown("away")] * 100)
    session = Lasting(open_, patience_seconds=0.0)
    with pytest.raises(ServerDown):
        Search(session, lambda _goals: [Suggestion("a")]).run()


def test_a_program_that_is_refused_is_refused_at_once() -> None:
    def refused() -> Fake:
        raise UnknownRun("no environment has this name")

    with pytest.raises(UnknownRun):
        Lasting(refused)
