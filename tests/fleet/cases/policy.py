"""Lifecycle policies: each code, wrong and right."""

from __future__ import annotations

from cases.case import POLICY, POOL, Case, one

ATTIC = POLICY.replace("edges:", "  attic: {summary: lost}\nedges:\n  attic: [production]")
ARRIVAL = POLICY.replace("onboard", "arrival")
HOT = POLICY.replace("faults:\n", "faults:\n  hot: {classes: [gpu.hot], timing: record}\n")

CASES: dict[str, Case] = {
    "ASY0070": Case(
        {"specs/policy.yaml": ATTIC},
        one("specs/policy.yaml", ATTIC, "production: [onboard", "production: [attic, onboard"),
        "specs/policy.yaml:8:3",
    ),
    "ASY0071": Case(
        one("specs/policy.yaml", POLICY, "watch: [production]", "watch: [fabric]"),
        one("specs/policy.yaml", POLICY, "watch: [production]", "watch: []"),
        "specs/policy.yaml:7:51",
    ),
    "ASY0072": Case(
        one("specs/policy.yaml", HOT, "gpu.hot", "gpu.hut"), {"specs/policy.yaml": HOT}, "specs/policy.yaml:12:9"
    ),
    "ASY0073": Case(
        {"specs/policy.yaml": ARRIVAL},
        {"specs/policy.yaml": ARRIVAL, "inventory/pool.yml": POOL.replace("u:", "lifecycle_start: production, u:")},
        "inventory/pool.yml:4:5",
    ),
    "ASY0074": Case(one("specs/policy2.yaml", POLICY, "name: policy", "name: other"), {}, "specs/policy2.yaml:3:1"),
}
