"""Transports, schedulers, metrics and alerts: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import POOL, Case, replaced

PLACE = "rack: r1, u: 2"
DIGEST = f"@sha256:{64 * 'a'}"
TOKEN = "agent_token: {env: TOKEN}"


def with_variables(variables: str) -> dict[str, str | None]:
    """Return the inventory with variables for its second node."""
    assert PLACE in POOL
    return {"inventory/pool.yml": POOL.replace(PLACE, f"{variables}, {PLACE}")}


def both(first: str, second: str) -> dict[str, str | None]:
    """Return the inventory with variables for either node."""
    return {"inventory/pool.yml": POOL.replace("rack:", f"{first}, rack:", 1).replace(PLACE, f"{second}, {PLACE}")}


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


def with_monitoring(variables: str, monitoring: str | None = MAP) -> dict[str, str | None]:
    """Return the inventory with variables for its second node, and a map."""
    assert PLACE in POOL
    return {"inventory/pool.yml": POOL.replace(PLACE, f"{variables}, {PLACE}"), "specs/monitoring.yaml": monitoring}


CASES: dict[str, Case] = {
    "ASY0130": Case(
        with_variables("slurm_step: {join: true}"),
        with_variables("transport: slurm, slurm_step: {join: true}"),
        "inventory/pool.yml:5:57",
    ),
    "ASY0131": Case(
        both("transport: local", "transport: local"),
        both("transport: local", "transport: ssh"),
        "inventory/pool.yml:5:57",
    ),
    "ASY0132": Case(
        with_variables("transport: push"), with_variables(f"transport: push, {TOKEN}"), "inventory/pool.yml:5:57"
    ),
    "ASY0282": Case(
        with_variables("load: {way: podman, image: quay.io/site/load:1.2}"),
        with_variables(f"load: {{way: podman, image: quay.io/site/load:1.2{DIGEST}}}"),
        "inventory/pool.yml:5:77",
    ),
    "ASY0283": Case(
        with_variables(f"load: {{way: kubernetes, image: quay.io/site/load{DIGEST}}}"),
        with_variables(f"workloads: kubernetes, load: {{way: kubernetes, image: quay.io/site/load{DIGEST}}}"),
        "inventory/pool.yml:5:57",
    ),
    "ASY0220": Case(
        with_variables("slurm_cordon: reservation"),
        with_variables("workloads: slurm, slurm_cordon: reservation"),
        "inventory/pool.yml:5:57",
    ),
    "ASY0160": Case(with_monitoring("transport: prometheus"), with_monitoring(METRICS), "inventory/pool.yml:5:57"),
    "ASY0161": Case(
        with_monitoring(METRICS, MAP.replace("exporters", "others")),
        with_monitoring(METRICS),
        "inventory/pool.yml:5:80",
    ),
    "ASY0162": Case(
        replaced("specs/monitoring.yaml", MAP, "gpu.hot", "gpu.cold"),
        {"specs/monitoring.yaml": MAP},
        "specs/monitoring.yaml:7:33",
    ),
}
