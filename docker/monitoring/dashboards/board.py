"""A dashboard as a plain value: its panels in order, and the variables that they use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as models

from docker.monitoring.dashboards.panels import POSTGRES, PROMETHEUS, Panel

#: The tag by which the farm's dashboards link to each other.
TAG = "lean-proof-farm"

#: The environments that workers serve or served.
ENVIRONMENTS = "label_values(farm_environment_silent_seconds, environment)"
#: The newest runs of manifests, as a person knows them: by time and file.
RUNS = """
SELECT run_id AS __value,
       to_char(created_at, 'YYYY-MM-DD HH24:MI') || ' ' || run_id || ' ' || manifests[1] AS __text
FROM report.runs WHERE owner IS NULL ORDER BY created_at DESC LIMIT 100
""".strip()


@dataclass(frozen=True, kw_only=True)
class Board:
    """A dashboard; ``uid`` is also the name of its file."""

    uid: str
    title: str
    description: str
    panels: Sequence[Panel]
    has_environments: bool = True
    has_runs: bool = False
    since: str = "now-6h"
    #: Longer where PostgreSQL counts the lines of whole runs.
    refresh: str = "30s"

    def build(self) -> models.Dashboard:
        """Return the dashboard as Grafana's model."""
        made = dashboard.Dashboard(self.title).uid(self.uid).description(self.description).tags([TAG])
        made = made.time(self.since, "now").refresh(self.refresh).timezone("browser").editable()
        made = made.tooltip(models.DashboardCursorSync.CROSSHAIR).link(_others())
        for variable in self._variables():
            made = made.with_variable(variable)
        for number, panel in enumerate(self.panels, 1):
            made = made.with_panel(panel.build(number))
        return made.build()

    def _variables(self) -> list[dashboard.DatasourceVariable | dashboard.QueryVariable]:
        chosen: list[dashboard.DatasourceVariable | dashboard.QueryVariable] = [
            dashboard.DatasourceVariable("prometheus").label("Prometheus").type("prometheus"),
            dashboard.DatasourceVariable("postgres").label("PostgreSQL").type(POSTGRES.type_val or ""),
        ]
        if self.has_environments:
            every = models.VariableOption(selected=True, text="All", value="$__all")
            asked: dict[str, object] = {"query": ENVIRONMENTS, "refId": "environment"}
            environment = dashboard.QueryVariable("environment").label("Environment").query(asked)
            environment = environment.datasource(PROMETHEUS).multi(True).include_all(True).current(every)
            chosen.append(environment.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED))
        if self.has_runs:
            run = dashboard.QueryVariable("run").label("Run").query(RUNS).datasource(POSTGRES)
            chosen.append(run.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED))
        return chosen


def _others() -> dashboard.DashboardLink:
    link = dashboard.DashboardLink("Other dashboards of the farm").tags([TAG])
    return link.type(models.DashboardLinkType.DASHBOARDS).as_dropdown(True).keep_time(True).include_vars(True)
