"""Lifecycle policies: each code, wrong and right."""

from __future__ import annotations

from cases.case import NODE, POLICY, POOL, Case, one

ATTIC = POLICY.replace("edges:", "  attic: {summary: lost}\nedges:\n  attic: [production]")
ARRIVAL = POLICY.replace("onboard", "arrival")
LADDER = POLICY.replace("rungs: {}", "rungs: {triage: {to: onboard}}")
CLOSED = POLICY.replace("certified_to: production", "fail_to: production")
SOAK = POLICY.replace("certified_to", "soak_hours: 2, deadline: {hours: 3}, certified_to")
PAIRS = POLICY + "racks: {pairs: {node_specs: [small], of: 2, more_than: 1}}\n"
PAIR = NODE.replace("fans:", "rack: {nodes: 2, gpus: 2, switch_trays: 1, power_shelves: 1}\nfans:")

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
    "ASY0073": Case(
        {"specs/policy.yaml": ARRIVAL},
        {"specs/policy.yaml": ARRIVAL, "inventory/pool.yml": POOL.replace("u:", "lifecycle_start: production, u:")},
        "inventory/pool.yml:4:5",
    ),
    "ASY0074": Case(one("specs/policy2.yaml", POLICY, "name: policy", "name: other"), {}, "specs/policy2.yaml:3:1"),
    "ASY0075": Case(
        {"specs/policy.yaml": CLOSED},
        one("specs/policy.yaml", CLOSED, "fail_to", "deadline: {hours: 1, to: production}, fail_to"),
        "specs/policy.yaml:6:3",
    ),
    "ASY0076": Case(
        one("specs/policy.yaml", LADDER, "certified_to", "pass_to"),
        {"specs/policy.yaml": LADDER},
        "specs/policy.yaml:13:35",
    ),
    "ASY0077": Case(
        one("specs/policy.yaml", POLICY, "any: {", "any: {severity: [degraded], "),
        one("specs/policy.yaml", POLICY, "  any: {", "  some: {severity: [degraded], timing: record}\n  any: {"),
        "specs/policy.yaml:12:3",
    ),
    "ASY0088": Case(
        one("specs/policy.yaml", POLICY, "certified_to: production", "certified_to: productoin"),
        {},
        "specs/policy.yaml:6:27",
    ),
    "ASY0190": Case(
        one("specs/policy.yaml", SOAK, "hours: 3", "hours: 2"), {"specs/policy.yaml": SOAK}, "specs/policy.yaml:6:53"
    ),
    "ASY0191": Case(
        {**one("specs/policy.yaml", PAIRS, "more_than: 1", "more_than: 2"), "specs/node.yaml": PAIR},
        {"specs/policy.yaml": PAIRS, "specs/node.yaml": PAIR},
        "specs/policy.yaml:18:45",
    ),
    "ASY0192": Case(
        {"specs/policy.yaml": PAIRS},
        {"specs/policy.yaml": PAIRS, "specs/node.yaml": PAIR},
        "specs/policy.yaml:18:30",
    ),
}
