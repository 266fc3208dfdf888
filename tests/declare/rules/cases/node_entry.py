"""How nodes enter: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import POLICY, POOL, Case

ARRIVAL = POLICY.replace("onboard", "arrival")
IMPORT = "{nodes: [n1, n2], reason: they served before, expires: 2027-01-01}"
RESERVE = POLICY.replace("edges:", "  spare: {summary: waits, spare: true}\nedges:\n  spare: [production]")
SPARE = {"specs/policy.yaml": RESERVE}
OLD_IMPORT = IMPORT.replace("2027", "2024")


CASES: dict[str, Case] = {
    "ASY0073": Case(
        {"specs/policy.yaml": ARRIVAL},
        {"specs/policy.yaml": ARRIVAL, "inventory/pool.yml": POOL.replace("u:", "lifecycle_start: arrival, u:")},
        "inventory/pool.yml:4:5",
    ),
    "ASY0098": Case(
        {"inventory/pool.yml": POOL.replace("u:", "lifecycle_start: production, u:")},
        {"inventory/pool.yml": POOL.replace("u:", f"service_import: {IMPORT}, u:")},
        "inventory/pool.yml:4:67",
    ),
    "ASY0413": Case(
        {"inventory/pool.yml": POOL.replace("u:", "capacity: {delivered: 99, spares: 1}, u:"), **SPARE},
        {"inventory/pool.yml": POOL.replace("u:", "capacity: {delivered: 1}, u:"), **SPARE},
        "inventory/pool.yml:5:67",
    ),
    "ASY0226": Case(
        {"inventory/pool.yml": POOL.replace("u:", f"service_import: {OLD_IMPORT}, u:")},
        {"inventory/pool.yml": POOL.replace("u:", f"service_import: {IMPORT}, u:")},
        "inventory/pool.yml:4:67",
    ),
}
