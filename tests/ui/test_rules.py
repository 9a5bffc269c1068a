"""The alerts fire where they should and nowhere else, as Prometheus itself computes them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.dashboards import filled, queries

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


def _seals(**numbers: str) -> dict[str, str]:
    """Return series of sealed modules by result."""
    labels = 'environment="core", instance="a"'
    return {f'farm_seals_total{{{labels}, result="{result}"}}': each for result, each in numbers.items()}


_TIMEOUTS = {'farm_checks_total{environment="core", verdict="proved"}': "0+9x40"}


@pytest.mark.parametrize(
    ("panel", "series", "share"),
    [
        ("Seals refused", _seals(accepted="0+9x40"), 0.0),
        ("Seals refused", _seals(accepted="0+3x40", axiom="0+1x40"), 0.25),
        ("Seals refused", _seals(accepted="0+3x40", kernel_time="0+1x40", has_sorry="0+1x40"), 0.0),
        ("Seals refused", _seals(accepted="0+3x40", no_reply="0+1x40", bad_challenge="0+1x40"), 0.0),
        ("Timeouts among verdicts", _TIMEOUTS, 0.0),
    ],
)
def test_a_share_is_of_what_its_panel_says_and_0_where_nothing_is(
    program: Callable[[str], str], tmp_path: Path, panel: str, series: dict[str, str], share: float
) -> None:
    (query,) = (each for each in queries() if each.panel == panel)
    asked = {
        "expr": f"round({filled(query.text, window='5m', span='30m')}, 0.01)",
        "eval_time": "35m",
        "exp_samples": [{"labels": "{}", "value": share}],
    }
    told = [{"series": name, "values": values} for name, values in series.items()]
    test = {"interval": "1m", "input_series": told, "promql_expr_test": [asked]}
    (tmp_path / "panel.yaml").write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": [test]}))
    said = subprocess.run(
        [program("promtool"), "test", "rules", "panel.yaml"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert said.returncode == 0, said.stdout + said.stderr
