"""A dashboard: rows of panels, with the choice of a Prometheus and of pools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders.dashboard import Dashboard as DashboardBuilder
from grafana_foundation_sdk.builders.dashboard import DatasourceVariable, QueryVariable, Row
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import VariableRefresh, VariableSort

from tools.dashboards.panel import SOURCE, Panel


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard. `name` is its file; `variables` maps each choice to the metric whose label it lists."""

    name: str
    title: str
    rows: Mapping[str, Sequence[Panel]]
    variables: Mapping[str, str]

    def format_json(self) -> str:
        """Return the dashboard as Grafana imports it."""
        made = DashboardBuilder(f"assay: {self.title}").uid(f"assay-{self.name}").tags(["assay"]).editable()
        made = made.refresh("1m").time("now-24h", "now").timezone("browser")
        made = made.with_variable(DatasourceVariable("datasource").type("prometheus").label("Prometheus"))
        for label, metric in self.variables.items():
            made = made.with_variable(_make_variable(label, metric))
        for title, panels in self.rows.items():
            made = made.with_row(Row(title))
            for panel in panels:
                made = made.with_panel(panel.draw())
        return json.dumps(made.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


def _make_variable(label: str, metric: str) -> Any:
    made = QueryVariable(label).label(label).query(f"label_values({metric}, {label})").datasource(SOURCE)
    made = made.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).sort(VariableSort.ALPHABETICAL_ASC)
    return made.multi(True).include_all(True).all_value(".*")
