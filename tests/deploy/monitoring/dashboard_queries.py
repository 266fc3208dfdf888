"""The queries of the panels of a dashboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.places import ROOT

FILES = sorted((ROOT / "deploy" / "grafana").glob("*.json"))
VARIABLES = {"$__rate_interval": "1m", "$pool": ".*", "$node": ".*"}


def list_panels(file: Path) -> list[tuple[str, list[str]]]:
    """Return the title and the queries of each panel, with every choice at "All"."""
    return [(panel["title"], [_fill(target["expr"]) for target in panel["targets"]]) for panel in _walk(file)]


def _walk(file: Path) -> Iterator[dict[str, Any]]:
    for panel in json.loads(file.read_text())["panels"]:
        yield from panel.get("panels", ()) if panel["type"] == "row" else [panel]


def _fill(query: str) -> str:
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    assert "$" not in query, query
    return query
