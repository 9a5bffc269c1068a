"""Panels and their queries as plain values, and what makes Grafana's JSON of them.

A panel says in its description how to read it. Whatever names a problem or a single run asks PostgreSQL;
everything else asks Prometheus, where each value of a label costs memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from grafana_foundation_sdk.builders import bargauge, common, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common as models_common
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

#: The variables of a dashboard that choose where to ask.
PROMETHEUS = models_common.DataSourceRef(type_val="prometheus", uid="${prometheus}")
POSTGRES = models_common.DataSourceRef(type_val="grafana-postgresql-datasource", uid="${postgres}")

#: The windows that Grafana fits to the time shown: of one point of a line, and of all of it.
STEP, ALL = "[$__rate_interval]", "[$__range]"

_Visual = timeseries.Panel | stat.Panel | table.Panel | bargauge.Panel


def here(metric: str, *matchers: str) -> str:
    """Return a selector of a metric in the chosen environments."""
    chosen = ",".join(('environment=~"$environment"', *matchers))
    return f"{metric}{{{chosen}}}"


def per_second(metric: str, *matchers: str, by: str = "", window: str = STEP) -> str:
    """Return the rate of a counter in the chosen environments, added up by these labels."""
    return f"sum{by and f' by ({by})'} (rate({here(metric, *matchers)}{window}))"


def high(metric: str, by: str, *, window: str = STEP) -> str:
    """Return the 95th percentile of a histogram, by these labels."""
    return f"histogram_quantile(0.95, {per_second(f'{metric}_bucket', by=f'le, {by}', window=window)})"


def share(metric: str, part: str, *matchers: str, by: str = "", window: str = STEP) -> str:
    """Return which share of a counter has these label values; 0 where none has."""
    some = per_second(metric, *matchers, part, by=by, window=window)
    whole = per_second(metric, *matchers, by=by, window=window)
    return f"({some} or 0 * {whole}) / {whole}"


@dataclass(frozen=True)
class Prom:
    """A question to Prometheus, over the time shown or only ``now``; ``le`` where it asks for a histogram."""

    expr: str
    legend: str = ""
    now: bool = False
    le: bool = False

    def target(self, ref_id: str, *, as_table: bool) -> Builder[Dataquery]:
        """Return the query as Grafana's builder."""
        kind = PromQueryFormat.TABLE if as_table else PromQueryFormat.TIME_SERIES
        query = prometheus.Dataquery().ref_id(ref_id).datasource(PROMETHEUS).expr(self.expr)
        query = query.legend_format(self.legend or "__auto")
        query = query.format(PromQueryFormat.HEATMAP if self.le else kind)
        return query.instant() if self.now or as_table else query.range()


@dataclass(frozen=True)
class Sql:
    """A question to PostgreSQL: a table, or with ``over_time`` series with a column `time`."""

    text: str
    over_time: bool = False

    def target(self, ref_id: str, *, as_table: bool) -> Builder[Dataquery]:
        """Return the query as Grafana's builder."""
        is_series = self.over_time and not as_table
        return _SqlQuery(ref_id, self.text.strip(), "time_series" if is_series else "table")


@dataclass(frozen=True)
class _SqlQuery(Builder[Dataquery], Dataquery):
    """The query of Grafana's PostgreSQL data source, which the SDK has no builder for."""

    ref_id: str
    text: str
    format: str

    def build(self) -> Dataquery:
        return self

    def to_json(self) -> dict[str, object]:
        return {
            "refId": self.ref_id,
            "datasource": POSTGRES,
            "editorMode": "code",
            "format": self.format,
            "rawQuery": True,
            "rawSql": self.text,
        }


@dataclass(frozen=True)
class Panel:
    """One panel; ``width`` is of 24, and ``bounds`` are values from which a number turns yellow, then red.

    The lines of a ``description`` are one paragraph. ``options`` are those of the panel's kind.
    """

    title: str
    description: str
    queries: Prom | Sql | Sequence[Prom | Sql]
    unit: str = "short"
    _: KW_ONLY
    width: int = 12
    height: int = 8
    bounds: Sequence[float] = ()
    options: dict[str, Any] = field(default_factory=dict)

    as_table = False

    @property
    def asked(self) -> Sequence[Prom | Sql]:
        """The queries, of which a panel of one may be given that alone."""
        return [self.queries] if isinstance(self.queries, Prom | Sql) else self.queries

    def visual(self) -> _Visual:
        """Return the builder of the panel's kind."""
        raise NotImplementedError

    def build(self, number: int) -> _Visual:
        """Return the panel as Grafana's builder."""
        is_sql = isinstance(self.asked[0], Sql)
        visual = self.visual().id(number).title(self.title).description(" ".join(self.description.split()))
        visual = visual.datasource(POSTGRES if is_sql else PROMETHEUS)
        visual = visual.unit(self.unit).span(self.width).height(self.height)
        if self.bounds:
            visual = visual.thresholds(_thresholds(self.bounds))
        for ref_id, query in zip("ABCDEFGH", self.asked, strict=False):
            visual = visual.with_target(query.target(ref_id, as_table=self.as_table))
        return visual


def _thresholds(bounds: Sequence[float]) -> dashboard.ThresholdsConfig:
    colors = ("green", "yellow", "red") if len(bounds) == 2 else ("green", "red")
    steps = [
        models.Threshold(value=value, color=color)
        for value, color in zip((None, *bounds), colors, strict=True)
    ]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)


class Series(Panel):
    """Lines over time, stacked where the parts make a whole."""

    def visual(self) -> _Visual:
        """Return the builder of the panel's kind."""
        made = timeseries.Panel().min(0).line_width(1).show_points(models_common.VisibilityMode.NEVER)
        made = made.legend(_below()).tooltip(_all_sorted()).fill_opacity(10)
        if "most" in self.options:
            made = made.max(self.options["most"])
        if self.options.get("stacked"):
            stacking = common.StackingConfig().mode(models_common.StackingMode.NORMAL)
            made = made.stacking(stacking).fill_opacity(60)
        return made


def _below() -> Builder[models_common.VizLegendOptions]:
    mode, place = models_common.LegendDisplayMode.LIST, models_common.LegendPlacement.BOTTOM
    return common.VizLegendOptions().display_mode(mode).placement(place).show_legend(True)


def _all_sorted() -> Builder[models_common.VizTooltipOptions]:
    every, falling = models_common.TooltipDisplayMode.MULTI, models_common.SortOrder.DESCENDING
    return common.VizTooltipOptions().mode(every).sort(falling)


@dataclass(frozen=True)
class Number(Panel):
    """One number, or a few side by side."""

    width: int = 6
    height: int = 4

    def visual(self) -> _Visual:
        """Return the builder of the panel's kind."""
        made = stat.Panel().graph_mode(models_common.BigValueGraphMode.NONE).reduce_options(_last())
        made = made.color_mode(models_common.BigValueColorMode.VALUE)
        return made.no_value(self.options.get("nothing", "none"))


def _last() -> Builder[models_common.ReduceDataOptions]:
    return common.ReduceDataOptions().calcs(["lastNotNull"]).values(False)


class Bars(Panel):
    """One bar for each label value, or for each row where the answer is a table."""

    def visual(self) -> _Visual:
        """Return the builder of the panel's kind."""
        reduced = _last()
        if isinstance(self.asked[0], Sql):
            reduced = common.ReduceDataOptions().values(True)
        made = bargauge.Panel().min(0).orientation(models_common.VizOrientation.HORIZONTAL)
        made = made.display_mode(models_common.BarGaugeDisplayMode.BASIC).reduce_options(reduced)
        return made.value_mode(models_common.BarGaugeValueMode.TEXT)


class Rows(Panel):
    """A table; ``units`` in the options gives columns units of their own."""

    as_table = True

    def visual(self) -> _Visual:
        """Return the builder of the panel's kind."""
        made = table.Panel().filterable(True)
        for column, unit in self.options.get("units", {}).items():
            made = made.override_by_name(column, [models.DynamicConfigValue(id_val="unit", value=unit)])
        if "hidden" in self.options:
            hidden = [models.DynamicConfigValue(id_val="custom.hidden", value=True)]
            for column in self.options["hidden"]:
                made = made.override_by_name(column, hidden)
        return made
