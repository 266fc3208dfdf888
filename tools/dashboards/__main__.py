"""Writes the dashboards to deploy/grafana: `python -m tools.dashboards`."""

from __future__ import annotations

from pathlib import Path

from tools.dashboards.catalogue import DASHBOARDS

FOLDER = Path(__file__).parents[2] / "deploy" / "grafana"

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for dashboard in DASHBOARDS:
        (FOLDER / f"{dashboard.name}.json").write_text(dashboard.format_json())
