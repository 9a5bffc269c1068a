"""Reports as pages: invented evaluations in a farm of their own, and the page that `farm report` writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from farm.runs.submit import submit
from tests.bench.around.site import FarmAtWork, options
from tests.evaluations import Evaluation, Given, give


def loaded(farm: FarmAtWork, path: Path, made: Sequence[tuple[Mapping[str, object], Given | None]]) -> str:
    """Submit a manifest of these lines, record their verdicts, and return the run."""
    path.write_text("".join(json.dumps(line) + "\n" for line, _ in made))
    run_id = submit(farm.store, [path], options(), known=farm.queries.served()).run_id
    give(farm.engine, run_id, [verdict for _, verdict in made])
    return run_id


def two_models(farm: FarmAtWork, folder: Path) -> tuple[str, str]:
    """Load what an earlier and a later model made of the same problems, and return both runs."""
    before = Evaluation(problems=244, samples=32)
    after = Evaluation(problems=244, samples=32, skill=0.35, seed=2)
    return (
        loaded(farm, folder / "prover-step-1000.jsonl", list(before.made())),
        loaded(farm, folder / "prover-step-2000.jsonl", list(after.made())),
    )


def page(farm: FarmAtWork, path: Path, *words: str) -> Path:
    """Have `farm report` write its page, and return where it is."""
    command = [sys.executable, "-P", "-m", "farm", "report", *words, "--html", str(path)]
    environment = {**os.environ, **farm.settings}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode in (0, 3), ended.stderr
    return path
