"""Trend rules: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import Case

FILE, CATALOG = "specs/trends.yaml", "specs/trend-faults.yaml"
COST = "{node_hours: 1, source: us}"
COSTS = f"{{test: {COST}, drain: {COST}, failure: {COST}}}"
HEAD = f"kind: TrendRules\nname: ours\nowner: us\nsources: [us]\ncosts: {COSTS}\n"
CLASS = "{summary: It gets warmer., by_assay: true, severity: informational, blame: hardware, remedy: none, source: us}"


def trends(*rules: str) -> dict[str, str | None]:
    faults = "kind: FaultCatalog\nname: trends\nsources: [us]\nclasses:\n"
    faults += "".join(f"  {name}: {CLASS}\n" for name in ("trend.heat", "trend.other", "gpu.hot"))
    return {FILE: f"{HEAD}rules:\n" + "".join(f"  {rule}\n" for rule in rules), CATALOG: faults}


def heat(fault: str = "trend.heat", failures: str = "gpu.*") -> str:
    return f'heat: {{measurements: ["*temperature*"], fault: {fault}, failures: ["{failures}"], source: us}}'


CASES: dict[str, Case] = {
    "ASY0370": Case(trends(heat("trend.heta")), trends(heat()), f"{FILE}:7:43"),
    "ASY0371": Case(trends(heat(failures="gup.*")), trends(heat()), f"{FILE}:7:73"),
}
