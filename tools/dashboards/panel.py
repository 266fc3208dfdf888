"""A panel of a dashboard: a title, queries on assay's metrics, and how they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from grafana_foundation_sdk.builders import bargauge, prometheus, stat, table, timeseries
from grafana_foundation_sdk.builders.common import ReduceDataOptions, StackingConfig
from grafana_foundation_sdk.models.common import StackingMode
from grafana_foundation_sdk.models.dashboard import DataSourceRef
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

Kind = Literal["lines", "stack", "number", "bars", "table"]
BUILDERS: dict[str, Any] = {
    "lines": timeseries.Panel,
    "stack": timeseries.Panel,
    "number": stat.Panel,
    "bars": bargauge.Panel,
    "table": table.Panel,
}
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
WIDTHS = {"number": 4, "table": 24}
HEIGHTS = {"number": 4, "table": 12}


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression, and the name of its lines: `{{label}}` stands for a label's value."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. `says` explains to a reader what is drawn; `unit` is Grafana's name of a unit."""

    title: str
    says: str
    queries: Sequence[Query]
    kind: Kind = "lines"
    unit: str = "short"

    def draw(self) -> Any:
        """Return the SDK's builder of this panel."""
        made = BUILDERS[self.kind]().title(self.title).description(self.says).unit(self.unit).datasource(SOURCE)
        made = made.span(WIDTHS.get(self.kind, 12)).height(HEIGHTS.get(self.kind, 8))
        if self.kind == "stack":
            made = made.stacking(StackingConfig().mode(StackingMode.NORMAL)).fill_opacity(30)
        if self.kind in ("number", "bars"):
            made = made.reduce_options(ReduceDataOptions().calcs(["lastNotNull"]).values(False))
        for query in self.queries:
            made = made.with_target(_make_target(query, is_now=self.kind not in ("lines", "stack"), kind=self.kind))
        return made


def lines(title: str, says: str, *queries: Query, unit: str = "short") -> Panel:
    """Return a panel with a line for each series."""
    return Panel(title, says, queries, "lines", unit)


def stack(title: str, says: str, *queries: Query, unit: str = "short") -> Panel:
    """Return a panel in which the series stand on each other."""
    return Panel(title, says, queries, "stack", unit)


def number(title: str, says: str, expression: str, unit: str = "short") -> Panel:
    """Return a panel with one number: the value now."""
    return Panel(title, says, (Query(expression),), "number", unit)


def bars(title: str, says: str, *queries: Query, unit: str = "short") -> Panel:
    """Return a panel with a bar for each series: its value now."""
    return Panel(title, says, queries, "bars", unit)


def _make_target(query: Query, kind: Kind, *, is_now: bool) -> Any:
    made = prometheus.Dataquery().expr(query.expression).legend_format(query.legend)
    made = made.instant() if is_now else made.range()
    return made.format(PromQueryFormat.TABLE) if kind == "table" else made
