"""HOL Light step, canaries: judges tactics of known verdict before a worker serves an environment."""

from __future__ import annotations

from dataclasses import dataclass, replace

from farm.assembly.challenge import Challenge
from farm.judging.job import Check
from farm.judging.verdict import Reason
from farm.limits import Limits

#: Ample limits: a busy machine must not change a canary's verdict.
_AMPLE = replace(Limits(), wall_seconds=600.0, cpu_seconds=600.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Canary:
    """A goal, a tactic, and the reason that judging it must give, within which limits."""

    name: str
    goal: str
    tactic: str
    expected: Reason
    limits: Limits = _AMPLE

    @property
    def check(self) -> Check:
        """The check of this canary."""
        program = f"prove(`{self.goal}`,\n{self.tactic}\n);;\n"
        return Check(
            program=program, limits=self.limits, challenge=Challenge(program=self.goal, name=self.name)
        )


RIGHT = Canary(name="right", goal="1 + 1 = 2", tactic="ARITH_TAC", expected=Reason.OK)
#: Goes on for as long as it may, and takes no memory for it.
_ENDLESS = "let rec again (n:int) : tactic = again n in again 0"
_GROWING = "let rec more (l:int list) : tactic = more (1::l) in more []"

CANARIES = (
    RIGHT,
    Canary(name="wrong", goal="1 + 1 = 3", tactic="ARITH_TAC", expected=Reason.ERROR),
    Canary(name="incomplete", goal="T /\\ T", tactic="CONJ_TAC", expected=Reason.ERROR),
    Canary(name="cheating", goal="F", tactic="CHEAT_TAC", expected=Reason.AXIOM),
    Canary(name="forged", goal="F", tactic="ACCEPT_TAC (Obj.magic TRUTH)", expected=Reason.AUDIT),
    Canary(name="other", goal="F", tactic="ACCEPT_TAC TRUTH", expected=Reason.ERROR),
    Canary(name="unbound", goal="x = 0", tactic="ARITH_TAC", expected=Reason.BAD_CHALLENGE),
    Canary(
        name="endless",
        goal="F",
        tactic=_ENDLESS,
        expected=Reason.WALL_LIMIT,
        limits=replace(_AMPLE, wall_seconds=0.3),
    ),
    Canary(
        name="growing",
        goal="F",
        tactic=_GROWING,
        expected=Reason.MEMORY_LIMIT,
        limits=replace(_AMPLE, memory_mib=512),
    ),
)
