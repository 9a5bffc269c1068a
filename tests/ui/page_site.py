"""A served farm for looking at its page: runs with every verdict, hostile texts, and nobody's network."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import text

from farm.judging.audit import Replay
from farm.judging.report import Goal, Message
from tests.bench.around.site import FarmAtWork, farm_at_work
from tests.farms import CORE, a_decision, claimed, submitted
from tests.processes import CODE, eventually
from tests.reports import SEALED

HEADER = "import Mathlib\nopen Nat Real\n\n"
STATEMENTS = {
    "add_comm_nat": "theorem add_comm_nat (a b : Nat) : a + b = b + a := by",
    "and_swap": "theorem and_swap (p q : Prop) (h : p ∧ q) : q ∧ p := by",
    "sum_of_squares": "theorem sum_of_squares (a b : ℝ) : 2 * a * b ≤ a ^ 2 + b ^ 2 := by",
    "even_mul_succ": "theorem even_mul_succ (n : ℕ) : 2 ∣ n * (n + 1) := by",
    "irrational_sqrt_two": "theorem irrational_sqrt_two : Irrational (√2) := by",
    "gcd_lcm": "theorem gcd_lcm (m n : ℕ) : m.gcd n * m.lcm n = m * n := by",
}
SCRIPT = "</script><script>document.title = 'taken'</script>"
IMAGE = '"><img src=x onerror="document.title = \'taken\'">'
TURNED = "\u202eevil\u2066 \u200bhidden\u200f\x1b[31m"
#: Whatever a model may write into names, proofs, messages and goals.
HOSTILE = f"{SCRIPT}{IMAGE}{TURNED}{{{{ 7 * 7 }}}}<!--"
_LISTENING = re.compile(r"Listening on (http:\S+), with the token (\S+)")
_LINK = re.compile(r"open (http:\S+)")


@dataclass(frozen=True)
class Seen:
    """The served farm: where it is, the token and link of this start, and its runs."""

    farm: FarmAtWork
    url: str
    token: str
    link: str
    first: str
    second: str

    def page(self, path: str = "/") -> str:
        return f"{self.url}/page{path}"


@contextmanager
def site(*words: str) -> Iterator[Seen]:
    """Serve a farm with two runs of the same problems, one of them hostile in places, for a block."""
    with farm_at_work() as farm, tempfile.TemporaryDirectory() as folder:
        farm.store.register([CORE])
        first, second = _runs(farm, Path(folder))
        with serving(farm, Path(folder), *words) as (url, token, link):
            yield Seen(farm, url, token, link, first, second)


def _runs(farm: FarmAtWork, folder: Path) -> tuple[str, str]:
    runs = []
    for name, seed in (("prover-7b-step-2000.jsonl", 1), ("prover-7b-step-4000.jsonl", 3)):
        entries = list(_entries(seed))
        path = folder / name
        path.write_text("".join(json.dumps(each) + "\n" for each in entries))
        run = submitted(farm.store, path, environment="core", share=False).run_id
        for line, kind in _kinds(seed, len(entries)):
            judge(farm, run, line, **FACTS.get(kind, {}))
        runs.append(run)
    return runs[0], runs[1]


def _entries(seed: int) -> Iterator[dict[str, Any]]:
    for name, statement in STATEMENTS.items():
        for sample in range(4):
            tactic = ("exact?", "omega", "nlinarith [sq_nonneg (a - b)]", "simp_all")[sample]
            answer = (
                "We first look at small cases.\n\n```lean4\n"
                f"set_option maxRecDepth {1000 + seed} in\n{statement}\n"
                f"  have h{sample} : True := trivial\n  -- sample {sample} of model {seed}\n  {tactic}\n```\n"
            )
            yield {
                "name": name,
                "group": name,
                "header": HEADER,
                "formal_statement": statement + "\n",
                "generation": answer,
            }
    proof = f"theorem hostile : True := by\n  trivial -- {HOSTILE}\n"
    yield {"name": f"hostile {HOSTILE}", "group": HOSTILE, "predicted_proof": HEADER + proof}
    yield {"name": "long_line", "predicted_proof": HEADER + "theorem t : True := by\n  " + "simp " * 20_000}


def _kinds(seed: int, count: int) -> Iterator[tuple[int, str]]:
    kinds = ("proved", "error", "proved", "timeout", "sorry", "proved", "error", "proved", "memory", "failed")
    for line in range(1, count - 1):
        if line not in (23, 24):
            yield line, kinds[(line * seed) % len(kinds)]
    yield count - 1, "hostile"
    yield count, "megabyte"


def _message(severity: str, words: str, line: int, column: int = 2) -> Message:
    return Message(
        severity=severity, kind="", text=words, line=line, column=column, end_line=line, end_column=column + 4
    )


_ERROR = _message("error", "linarith failed to find a contradiction\na b : ℝ\nh0 : True\n⊢ False", 8)
_WARNING = _message("warning", "unused variable `h0`\nnote: this linter can be disabled", 6, 7)
_GOAL = Goal(kind="error", goal="a b : ℝ\nh0 : True\n⊢ 2 * a * b ≤ a ^ 2 + b ^ 2", line=8, column=2)
_REPLAY = Replay(accepted=True, constants=12)
_SEAL = replace(SEALED, target="add_comm_nat", axioms=("propext", "Quot.sound"), replay=_REPLAY)
_MEMORY = {"limit": "memory", "exit_status": None, "audit": None, "peak_memory_kib": 4 << 20}
FACTS: dict[str, dict[str, Any]] = {
    "proved": {"audit": _SEAL, "messages": (_WARNING,), "isolation": "cgroup2+bwrap"},
    "error": {"exit_status": 1, "messages": (_WARNING, _ERROR), "goals": (_GOAL,), "audit": None},
    "sorry": {"messages": (_message("warning", "declaration uses `sorry`", 5),), "audit": None},
    "timeout": {"limit": "wall", "exit_status": None, "wall_seconds": 30.02, "audit": None},
    "memory": _MEMORY,
    "failed": {"box_error": "the control group could not be made", "exit_status": None, "audit": None},
    "hostile": {
        "exit_status": 1,
        "messages": (_message("error", HOSTILE, 5), _message("error", HOSTILE, 999)),
        "goals": (Goal(kind="error", goal=HOSTILE, line=5, column=0),),
        "audit": replace(SEALED, target=HOSTILE, accepted=False, axioms=(HOSTILE,)),
    },
    "megabyte": {
        "exit_status": 1,
        "messages": tuple(_message("error", f"{n} " + "x" * 10_000, 4) for n in range(100)),
        "audit": None,
    },
}


def judge(farm: FarmAtWork, run: str, line: int, **facts: Any) -> None:
    """Give a line of a run a verdict, as a worker would."""
    with farm.engine.connect() as connection:
        question = text("SELECT check_id FROM jobs WHERE run_id = :run AND line = :line")
        check = int(connection.scalar(question, {"run": run, "line": line}))
    claim = claimed(farm.store, check, worker="node-3/2")
    decision = a_decision(**{"isolation": "cgroup2+bwrap", **facts})
    assert farm.store.record([(claim, decision)]).check_ids


@contextmanager
def serving(farm: FarmAtWork, folder: Path, *words: str) -> Iterator[tuple[str, str, str]]:
    """Serve a farm at a port; gives the address, the token of this start, and the link that signs in."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("FARM_")}
    with (folder / "said").open("w+") as said:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "farm", "serve", "--port", "0", *words],
            env={**own, **farm.settings, "PYTHONPATH": CODE, "COLUMNS": "200"},
            stderr=said,
        )
        try:
            eventually(lambda: _LINK.search(_said(folder)) or process.poll() is not None, seconds=60)
            found, link = _LISTENING.search(_said(folder)), _LINK.search(_said(folder))
            assert found and link, _said(folder)
            yield found[1], found[2], link[1]
        finally:
            process.terminate()
            process.wait(60)


def _said(folder: Path) -> str:
    return (folder / "said").read_text()
