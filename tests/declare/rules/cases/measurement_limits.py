"""Limits and their units: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import FABRIC, NODE, SUITE, Case, replaced

IDLE = NODE + "  idle: {value: 1, unit: W, source: us}\n"
IDLE_TEST = SUITE + "    assert limits.idle\n"
DRIVE = "  nvme_size: {{value: {}, unit: GB, source: us}}\n"
LOW = NODE + "  gpu_temperature_low: {value: 5, unit: °C, source: us}\n"
LOW_TEST = SUITE + "    assert limits.gpu_temperature_low\n"
LINKS_TEST = """import pytest


@pytest.mark.phase("fabric")
@pytest.mark.fault("gpu.hot")
def test_link(link, fabric_limits, measure):
    measure("errors", link.errors, at_most=fabric_limits.errors, unit="count/h")
"""
LINKS = "limits: {{errors: {{value: 2, unit: {}, source: us}}}}\n"


RATE = NODE + "  rate: {value: 400, unit: Gb/s, source: us}\n"
RATE_TEST = SUITE.replace("limits)", "limits, measure)") + (
    '    measure("rate", gpu.rate_gbps, at_least=limits.rate)\n'
    '    measure("sum", 8 * gpu.rate_gbps, at_least=limits.rate, unit="Gb/s")\n'
)
RIGHT: dict[str, str | None] = {"specs/node.yaml": RATE, "suites/test_heat.py": RATE_TEST}

CASES: dict[str, Case] = {
    "ASY0050": Case(
        replaced("specs/node.yaml", NODE, "value: 85", "value: 850"),
        replaced("specs/node.yaml", NODE, "value: 85", "value: 95"),
        "specs/node.yaml:17:3",
    ),
    "ASY0051": Case(
        {**replaced("specs/node.yaml", LOW, "value: 5", "value: 85"), "suites/test_heat.py": LOW_TEST},
        {"specs/node.yaml": LOW, "suites/test_heat.py": LOW_TEST},
        "specs/node.yaml:18:3",
    ),
    "ASY0052": Case(
        {"specs/node.yaml": IDLE}, {"specs/node.yaml": IDLE, "suites/test_heat.py": IDLE_TEST}, "specs/node.yaml:18:3"
    ),
    "ASY0053": Case(
        {"suites/test_heat.py": IDLE_TEST},
        replaced("suites/test_heat.py", IDLE_TEST, "limits.idle", "spec.idle"),
        "suites/test_heat.py:10:12",
    ),
    "ASY0055": Case(
        {"specs/node.yaml": NODE + DRIVE.format(11)},
        {"specs/node.yaml": NODE + DRIVE.format(10)},
        "specs/node.yaml:18:3",
    ),
    "ASY0120": Case(
        {"specs/fabric.yaml": FABRIC, "suites/test_links.py": LINKS_TEST},
        {"specs/fabric.yaml": FABRIC + LINKS.format("count/h"), "suites/test_links.py": LINKS_TEST},
        "specs/fabric.yaml:2:1",
    ),
    "ASY0121": Case(
        {"specs/fabric.yaml": FABRIC + LINKS.format("count/min"), "suites/test_links.py": LINKS_TEST},
        {"specs/fabric.yaml": FABRIC + LINKS.format("count/h"), "suites/test_links.py": LINKS_TEST},
        "specs/fabric.yaml:10:10",
    ),
    "ASY0054": Case(
        {**RIGHT, **replaced("specs/node.yaml", RATE, "400, unit: Gb/s", "50, unit: GB/s")},
        RIGHT,
        "specs/node.yaml:18:3",
    ),
    "ASY0056": Case(
        replaced("specs/node.yaml", NODE, "unit: °C", "unit: C"),
        replaced("specs/node.yaml", NODE, "unit: °C", "unit: W"),
        "specs/node.yaml:17:32",
    ),
    "ASY0057": Case(
        {
            **RIGHT,
            **replaced("suites/test_heat.py", RATE_TEST, "at_least=limits.rate)", 'at_least=limits.rate, unit="GB/s")'),
        },
        {
            **RIGHT,
            **replaced("suites/test_heat.py", RATE_TEST, "at_least=limits.rate)", 'at_least=limits.rate, unit="Gb/s")'),
        },
        "suites/test_heat.py:10:5",
    ),
}
