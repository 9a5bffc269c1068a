"""Dashboards, rules, runbook and compose file agree with each other and with what the farm has."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from farm.cli.command import app
from farm.settings import VARIABLES
from tests.dashboards import MONITORING, ROOT, boards, documented, filled, queries, rules, selectors

COMPOSE = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
#: The images that are built here.
OWN = ("lean-proof-farm", "lean-proof-farm-core")
PANELS = [panel for board in boards().values() for panel in board["panels"]]
PROMETHEUS = [query for query in queries() if not query.is_sql]
ALERTS = [rule["alert"] for rule in rules() if "alert" in rule]
RECORDS = {rule["record"] for rule in rules() if "record" in rule}


def test_the_dashboards_are_what_their_code_makes() -> None:
    command = [sys.executable, "-m", "docker.monitoring.dashboards", "--check"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr


def test_there_are_the_five_dashboards() -> None:
    assert {*boards()} == {"farm-overview", "farm-timeouts", "farm-trust", "farm-run", "farm-nodes"}
    assert all(board["uid"] == name for name, board in boards().items())


def test_a_panel_says_in_a_sentence_how_to_read_it() -> None:
    for panel in PANELS:
        assert re.fullmatch(r"[A-Z0-9`].{20,}\.", panel["description"], re.DOTALL), panel["title"]
        assert panel["gridPos"]["w"] <= 24, panel["title"]


def test_a_panel_names_no_server_of_its_own() -> None:
    for panel in PANELS:
        for where in (panel, *panel["targets"]):
            assert where["datasource"]["uid"] in ("${prometheus}", "${postgres}"), panel["title"]
            assert where["datasource"] == panel["datasource"], panel["title"]


@pytest.mark.parametrize("name", boards())
def test_a_dashboard_has_the_variables_that_its_queries_use(name: str) -> None:
    board = boards()[name]
    has = {variable["name"] for variable in board["templating"]["list"]}
    texts = " ".join(query.text for query in queries() if query.board == name)
    used = {word for word in re.findall(r"\$\{?(\w+)", texts) if not word.startswith("__")}
    assert used | {"prometheus", "postgres"} == has
    (environment,) = (each for each in board["templating"]["list"] if each["name"] == "environment")
    assert environment["multi"]
    assert environment["includeAll"]


def test_a_query_to_prometheus_asks_for_documented_metrics_and_labels() -> None:
    for query in PROMETHEUS:
        for metric, matchers in selectors(filled(query.text, window="1m", span="1h")):
            assert metric in documented(), query
            assert matchers.keys() <= documented()[metric], query


def test_what_names_a_run_or_a_problem_asks_postgresql() -> None:
    for query in PROMETHEUS:
        assert not re.search(r"by \([^)]*\brun\b", query.text), query
    assert all("report." in query.text for query in queries() if query.is_sql)


def test_a_rule_asks_for_documented_metrics_and_labels_or_records() -> None:
    for rule in rules():
        for metric, matchers in selectors(rule["expr"]):
            if metric not in RECORDS:
                assert metric in documented(), rule
                assert matchers.keys() <= documented()[metric], rule


def test_the_runbook_has_a_section_for_each_alert_and_for_nothing_else() -> None:
    page = (ROOT / "docs" / "operate" / "runbook.md").read_text()
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == ALERTS
    for section in page.split("\n## ")[1:]:
        for words in ("**It means**", "**Look at**", "**Do**"):
            assert words in section, section.partition("\n")[0]


def test_each_alert_is_tested_where_it_fires_and_where_it_does_not() -> None:
    tests = yaml.safe_load((ROOT / "tests" / "ui" / "rules.yaml").read_text())["tests"]
    calm, *troubled = ([*test["alert_rule_test"]] for test in tests)
    assert {case["alertname"] for case in calm if not case.get("exp_alerts")} == {*ALERTS}
    cases = [case for each in troubled for case in each]
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == {*ALERTS}
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == {*ALERTS}


def test_alerts_say_how_urgent_they_are_and_what_happened() -> None:
    for rule in rules():
        if "alert" in rule:
            assert rule["labels"]["severity"] in ("critical", "warning", "info")
            assert rule["annotations"]["summary"].endswith(".")


def test_the_alerts_that_descriptions_name_are_there() -> None:
    texts = " ".join(panel["description"] for panel in PANELS)
    assert {*re.findall(r"\bFarm[A-Z]\w+", texts)} <= {*ALERTS}


def test_a_part_of_the_compose_file_starts_after_parts_that_there_are() -> None:
    for name in SERVICES:
        known = {"service_started", "service_healthy", "service_completed_successfully"}
        for other, how in SERVICES[name].get("depends_on", {}).items():
            assert other in SERVICES, name
            assert how["condition"] in known, name
            assert how["condition"] != "service_healthy" or "healthcheck" in SERVICES[other], name


def test_a_part_of_the_compose_file_uses_only_files_and_volumes_that_there_are() -> None:
    for name in SERVICES:
        for mount in SERVICES[name].get("volumes", []):
            source = mount.split(":")[0]
            if source.startswith("."):
                assert (ROOT / "docker" / source).exists(), source
            else:
                assert source in COMPOSE["volumes"], name


def test_the_compose_file_sets_only_variables_that_the_farm_knows() -> None:
    for name in SERVICES:
        variables = SERVICES[name].get("environment", {})
        assert {each for each in variables if each.startswith("FARM_")} <= set(VARIABLES), name


def test_a_part_of_the_compose_file_is_reached_from_this_machine_only_and_has_a_fixed_version() -> None:
    for name in SERVICES:
        for port in SERVICES[name].get("ports", []):
            assert port.startswith("127.0.0.1:"), name
        image = SERVICES[name]["image"]
        assert image in OWN or re.search(r":v?\d", image), name


COMMANDS = [part["command"] for part in SERVICES.values() if part["image"] in OWN and part["command"]]


def test_the_commands_of_the_compose_file_are_the_farms() -> None:
    for point in entry_points(group="farm.commands"):
        point.load()(app)
    for words in COMMANDS:
        said = CliRunner().invoke(app, [*words, "--help"])  # an option that there is not is refused first
        assert said.exit_code == 0, said.output


def test_no_password_stands_in_the_compose_file() -> None:
    for part in SERVICES.values():
        for name, value in part.get("environment", {}).items():
            if "PASSWORD" in name or "URL" in name:
                assert "${" in value


def _yaml(path: str) -> Any:
    return yaml.safe_load((MONITORING / path).read_text())


def test_grafana_finds_what_is_provisioned() -> None:
    mounts = dict(mount.split(":")[1::-1] for mount in SERVICES["grafana"]["volumes"])
    (provider,) = _yaml("grafana/provisioning/dashboards/farm.yaml")["providers"]
    assert mounts[provider["options"]["path"]] == "./monitoring/grafana/dashboards"
    home = Path(SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert home.parent == Path(provider["options"]["path"])
    assert home.stem in boards()
    sources = {
        each["type"]: each for each in _yaml("grafana/provisioning/datasources/farm.yaml")["datasources"]
    }
    types = {
        variable["query"]
        for board in boards().values()
        for variable in board["templating"]["list"]
        if variable["type"] == "datasource"
    }
    assert set(sources) == types
    for source in sources.values():
        host = re.sub(r"^\w+://", "", source["url"]).partition(":")[0]
        assert host in SERVICES
    secret = sources["grafana-postgresql-datasource"]["secureJsonData"]["password"]
    assert secret.removeprefix("$") in SERVICES["grafana"]["environment"]


def test_prometheus_asks_where_the_farm_tells() -> None:
    configuration = _yaml("prometheus.yaml")
    jobs = {job["job_name"]: job for job in configuration["scrape_configs"]}
    assert {*jobs} == {"farm-workers", "farm"}
    (workers,) = jobs["farm-workers"]["dns_sd_configs"]
    assert str(workers["port"]) in SERVICES["worker"]["command"]
    assert workers["names"] == ["worker"]
    (static,) = jobs["farm"]["static_configs"]
    host, _, port = static["targets"][0].partition(":")
    assert port in SERVICES[host]["command"]
    sources = _yaml("grafana/provisioning/datasources/farm.yaml")["datasources"]
    assert sources[0]["jsonData"]["timeInterval"] == configuration["global"]["scrape_interval"]
