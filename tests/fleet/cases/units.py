"""Units: each code, wrong and right."""

from __future__ import annotations

from cases.case import NODE, SUITE, Case, one

RATE = NODE + "  rate: {value: 400, unit: Gb/s, source: us}\n"
RATE_TEST = SUITE.replace("limits)", "limits, measure)") + (
    '    measure("rate", gpu.rate_gbps, at_least=limits.rate)\n'
    '    measure("sum", 8 * gpu.rate_gbps, at_least=limits.rate, unit="Gb/s")\n'
)
RIGHT: dict[str, str | None] = {"specs/node.yaml": RATE, "suites/test_heat.py": RATE_TEST}

CASES: dict[str, Case] = {
    "ASY0054": Case(
        {**RIGHT, **one("specs/node.yaml", RATE, "400, unit: Gb/s", "50, unit: GB/s")}, RIGHT, "specs/node.yaml:18:3"
    ),
    "ASY0056": Case(
        one("specs/node.yaml", NODE, "unit: °C", "unit: C"),
        one("specs/node.yaml", NODE, "unit: °C", "unit: W"),
        "specs/node.yaml:17:32",
    ),
    "ASY0057": Case(
        {
            **RIGHT,
            **one("suites/test_heat.py", RATE_TEST, "at_least=limits.rate)", 'at_least=limits.rate, unit="GB/s")'),
        },
        {
            **RIGHT,
            **one("suites/test_heat.py", RATE_TEST, "at_least=limits.rate)", 'at_least=limits.rate, unit="Gb/s")'),
        },
        "suites/test_heat.py:10:5",
    ),
}
