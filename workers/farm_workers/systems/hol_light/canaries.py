"""HOL Light step, canaries: judges tactics of known verdict before a worker serves an environment."""

from __future__ import annotations

from dataclasses import replace

from farm.assembly.challenge import Challenge
from farm.judging.job import Check
from farm.judging.verdict import Reason
from farm.limits import Limits
from farm_workers.systems.canaries import Canary

#: Ample limits: a busy machine must not change a canary's verdict.
_AMPLE = replace(Limits(), wall_seconds=600.0, cpu_seconds=600.0)


def _canary(name: str, goal: str, tactic: str, expected: Reason, limits: Limits = _AMPLE) -> Canary:
    program = f"prove(`{goal}`,\n{tactic}\n);;\n"
    check = Check.of(program=program, limits=limits, challenge=Challenge(program=goal, name=name))
    return Canary(name=name, check=check, expected=expected)


RIGHT = _canary("right", goal="1 + 1 = 2", tactic="ARITH_TAC", expected=Reason.OK)
#: Goes on for as long as it may, and takes no memory for it.
_ENDLESS = "let rec again (n:int) : tactic = again n in again 0"
_GROWING = "let rec more (l:int list) : tactic = more (1::l) in more []"

CANARIES = (
    RIGHT,
    _canary("wrong", goal="1 + 1 = 3", tactic="ARITH_TAC", expected=Reason.ERROR),
    _canary("incomplete", goal="T /\\ T", tactic="CONJ_TAC", expected=Reason.ERROR),
    _canary("cheating", goal="F", tactic="CHEAT_TAC", expected=Reason.AXIOM),
    _canary("forged", goal="F", tactic="ACCEPT_TAC (Obj.magic TRUTH)", expected=Reason.AUDIT),
    _canary("other", goal="F", tactic="ACCEPT_TAC TRUTH", expected=Reason.ERROR),
    _canary("unbound", goal="x = 0", tactic="ARITH_TAC", expected=Reason.BAD_CHALLENGE),
    _canary(
        "endless",
        goal="F",
        tactic=_ENDLESS,
        expected=Reason.WALL_LIMIT,
        limits=replace(_AMPLE, wall_seconds=0.3),
    ),
    _canary(
        "growing",
        goal="F",
        tactic=_GROWING,
        expected=Reason.MEMORY_LIMIT,
        limits=replace(_AMPLE, memory_mib=512),
    ),
)
