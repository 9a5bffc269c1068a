"""What the tests of the trainers' adapters share: a service of a farm that a test may kill, and items."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import text

from farm.runs import revise
from farm.store.transitions import Store
from tests.commands import HEADER, PROGRAMS, Command, Running
from tests.farms import asking
from tests.processes import eventually

STATEMENT = "theorem t (p q : Prop) (h : p ∧ q) : q ∧ p := by"
RIGHT, WRONG = "```lean4\nexact ⟨h.right, h.left⟩\n```", "```lean4\nexact h\n```"
FIELDS = {"formal_statement": STATEMENT, "header": HEADER, "name": "and_swap"}
_LISTENING = re.compile(r"Listening on (http:\S+), with the token (\S+)")


def endless(name: str, seconds: float) -> tuple[dict[str, object], str]:
    """Return a problem and an answer on which Lean works for so long; no other test asks for it."""
    statement, _, proof = PROGRAMS["timeout", "wall_limit"].format(n=f"_{name}").partition("by\n")
    return {
        "formal_statement": f"{statement}by",
        "header": HEADER,
        "timeout": seconds,
    }, f"```lean4\n{proof}```"


@dataclass(frozen=True)
class Served:
    """A farm that is served over HTTP at a port, by a process of its own."""

    farm: Command
    running: Running

    @property
    def options(self) -> dict[str, Any]:
        """Where an adapter finds the service, and what the tests accept besides a full proof."""
        found = _LISTENING.search(self.running.said)
        assert found, self.running.said
        return {"url": found[1], "token": found[2], "accept": ["forgeable"]}

    def batches(self) -> int:
        """Return how many batches the farm has stored."""
        with asking(self.farm) as (_, queries), queries.engine.connect() as connection:
            return int(connection.scalar(text("SELECT count(*) FROM runs")) or 0)

    def cancel(self, *, most: int) -> None:
        """Cancel so many of the newest batches, beside the service."""
        with asking(self.farm) as (_, queries):
            with queries.engine.connect() as connection:
                newest = text("SELECT id FROM runs ORDER BY created_at DESC LIMIT :most")
                batches = list(connection.scalars(newest, {"most": most}))
            for batch in batches:
                revise.cancel(Store(queries.engine), batch)

    def kill(self) -> None:
        """Kill the service as a machine that loses its power would."""
        self.running.process.kill()
        self.running.process.wait()
        for name in ("http.json", "http.token"):  # it had no time to take them away
            (Path(self.farm.settings["FARM_HOME"]) / name).unlink(missing_ok=True)


@contextlib.contextmanager
def service(farm: Command, folder: Path) -> Iterator[Served]:
    """Serve a farm with `farm serve`; it answers when the block begins."""
    with farm.forked(folder, "serve", "--port", 0) as running:
        eventually(lambda: _LISTENING.search(running.said) or running.process.poll() is not None, seconds=60)
        served = Served(farm, running)
        try:
            yield served
        finally:
            served.kill()
