"""The alerts fire where they should and nowhere else, as Prometheus itself computes them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
MONITORING = HERE.parents[1] / "docker" / "monitoring"


def test_prometheus_accepts_the_rules_and_its_configuration(
    program: Callable[[str], str], tmp_path: Path
) -> None:
    for name in ("rules.yaml", "prometheus.yaml"):
        (tmp_path / name).write_text((MONITORING / name).read_text())
    for words in (["check", "rules", "rules.yaml"], ["check", "config", "prometheus.yaml"]):
        said = subprocess.run(
            [program("promtool"), *words], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert said.returncode == 0, said.stdout + said.stderr


def test_each_alert_fires_and_does_not(program: Callable[[str], str]) -> None:
    said = subprocess.run(
        [program("promtool"), "test", "rules", "rules.yaml"],
        capture_output=True,
        text=True,
        cwd=HERE,
        check=False,
    )
    assert said.returncode == 0, said.stdout + said.stderr
