"""Metrics and alerts that lead nowhere: each code, wrong and right."""

from __future__ import annotations

from cases.case import POOL, Case, one

PLACE = "rack: r1, u: 2"
MAP = """kind: Monitoring
name: exporters
sources: [us]
alerts:
  node: [node]
  rules:
    - {match: {alertname: Hot}, fault: gpu.hot, source: us}
    - {match: {xid: "*"}, fault: "gpu.xid.{xid}", source: us}
"""
METRICS = 'transport: prometheus, metrics: {url: "http://127.0.0.1:9090", match: {Hostname: "{name}"}}'


def said(variables: str, monitoring: str | None = MAP) -> dict[str, str | None]:
    """Return the inventory with variables for its second node, and a map."""
    assert PLACE in POOL
    return {"inventory/pool.yml": POOL.replace(PLACE, f"{variables}, {PLACE}"), "specs/monitoring.yaml": monitoring}


CASES: dict[str, Case] = {
    "ASY0160": Case(said("transport: prometheus"), said(METRICS), "inventory/pool.yml:5:57"),
    "ASY0161": Case(said(METRICS, MAP.replace("exporters", "others")), said(METRICS), "inventory/pool.yml:5:80"),
    "ASY0162": Case(
        one("specs/monitoring.yaml", MAP, "gpu.hot", "gpu.cold"),
        {"specs/monitoring.yaml": MAP},
        "specs/monitoring.yaml:7:33",
    ),
}
