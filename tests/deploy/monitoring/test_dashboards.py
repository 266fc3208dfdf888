"""The Grafana dashboards in deploy/grafana: as their Python makes them, on metrics and labels that assay has."""

from __future__ import annotations

import json
import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from assay.tell.metrics.families import FAMILIES
from tests.deploy.monitoring.dashboard_queries import FILES, list_panels
from tests.deploy.monitoring.monitored_families import list_unknown_names
from tools.dashboards.catalogue import DASHBOARDS

LABELS = {label for family in chain.from_iterable(FAMILIES.values()) for label in family.labels} | {"le"}


def test_the_files_are_what_their_python_makes() -> None:
    made = {f"{one.name}.json": one.format_json() for one in DASHBOARDS}
    committed = {file.name: file.read_text() for file in FILES}
    assert committed == made, "call: .venv/bin/python -m tools.dashboards"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_dashboard_reads_metrics_and_labels_that_assay_has(file: Path) -> None:
    panels = list_panels(file)
    queries = [query for _, queries in panels for query in queries]
    assert len(queries) >= len(panels) > 3
    assert [name for query in queries for name in list_unknown_names(query, ())] == []
    used = {label for query in queries for label in re.findall(r"(\w+)=~?\"", query)}
    grouped = [found for query in queries for found in re.findall(r"by \(([^)]*)\)", query)]
    used |= {label for found in grouped for label in found.split(", ")}
    assert used <= LABELS


def test_each_dashboard_and_panel_has_a_name_of_its_own_and_says_what_it_shows() -> None:
    documents: list[dict[str, Any]] = [json.loads(file.read_text()) for file in FILES]
    assert len({one["uid"] for one in documents}) == len({one["title"] for one in documents}) == len(documents)
    for one in documents:
        titles = [panel["title"] for panel in one["panels"] if panel["type"] != "row"]
        assert len(set(titles)) == len(titles), one["title"]
        assert all(panel["description"] for panel in one["panels"] if panel["type"] != "row")
