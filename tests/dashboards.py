"""Dashboards and rules as files, and the metrics of docs/reference/metrics.md, for tests of monitoring."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser
import yaml

ROOT = Path(__file__).parents[1]
MONITORING = ROOT / "docker" / "monitoring"
FOLDER = MONITORING / "grafana" / "dashboards"


@dataclass(frozen=True)
class Query:
    """A query of a panel, as Grafana has it; ``text`` is PromQL or SQL with Grafana's variables in it."""

    board: str
    panel: str
    text: str
    is_sql: bool
    is_now: bool = False

    def __str__(self) -> str:
        return f"{self.board}: {self.panel}: {' '.join(self.text.split())[:60]}"


def boards() -> dict[str, dict[str, Any]]:
    """Return each dashboard by the name of its file."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def queries() -> list[Query]:
    """Return every query of every panel."""
    found = []
    for name, board in boards().items():
        for panel in board["panels"]:
            for target in panel["targets"]:
                is_sql = "rawSql" in target
                text = target["rawSql"] if is_sql else target["expr"]
                is_now = bool(target.get("instant"))
                found.append(Query(name, panel["title"], text, is_sql, is_now))
    return found


def _variable(name: str) -> Any:
    (found,) = (each for each in boards()["farm-run"]["templating"]["list"] if each["name"] == name)
    return found["query"]


_ENVIRONMENTS = re.fullmatch(r"label_values\((\w+), (\w+)\)", _variable("environment")["query"])
assert _ENVIRONMENTS
#: The metric and the label that the variable `environment` offers, and the query of the variable `run`.
ENVIRONMENTS, RUNS = _ENVIRONMENTS.groups(), _variable("run")


def rules() -> list[dict[str, Any]]:
    """Return every rule."""
    groups = yaml.safe_load((MONITORING / "rules.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def filled(text: str, *, window: str, span: str, environments: str = ".*", run: str = "") -> str:
    """Return a query with Grafana's variables replaced, as Grafana does before it asks."""
    quoted = ", ".join(f"'{each}'" for each in environments.split("|"))
    text = text.replace("ARRAY[$environment]", f"ARRAY[{quoted}]").replace("$environment", environments)
    text = text.replace("$__rate_interval", window).replace("$__range", span).replace("$run", run)
    text = re.sub(r"\$__timeFilter\((\w+)\)", r"\1 BETWEEN now() - interval '1 day' AND now()", text)
    assert "$" not in text, text
    return text


def selectors(expression: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each metric that an expression asks for, with its matchers; raises where it cannot be parsed."""
    found: list[promql_parser.VectorSelector] = []

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.MatrixSelector):
            found.append(node.vector_selector)
        elif isinstance(node, promql_parser.VectorSelector):
            found.append(node)

    promql_parser.walk(promql_parser.parse(expression), pre_visit=visit)
    for each in found:
        assert each.name, expression
        yield each.name, {matcher.name: matcher.value for matcher in each.matchers.matchers}


_ROW = re.compile(r"^\| `(\w+)` \| (gauge|counter|histogram) \|([^|]*)\|", re.MULTILINE)
_OF_HISTOGRAMS = ("_bucket", "_sum", "_count")


def documented() -> dict[str, set[str]]:
    """Return the labels of each series that docs/reference/metrics.md lists, and those of Prometheus' own."""
    of_process = ("process_resident_memory_bytes", "process_start_time_seconds", "up")
    found: dict[str, set[str]] = {name: set() for name in of_process}
    for name, kind, labels in _ROW.findall((ROOT / "docs" / "reference" / "metrics.md").read_text()):
        names = [name + suffix for suffix in _OF_HISTOGRAMS] if kind == "histogram" else [name]
        for series in names:
            found[series] = set(re.findall(r"`(\w+)`", labels))
            if series.endswith("_bucket"):
                found[series].add("le")
    return {name: labels | {"instance", "job"} for name, labels in found.items()}
