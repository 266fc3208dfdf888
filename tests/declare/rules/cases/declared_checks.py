"""Declared checks and suites: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import CHECKS, FAULTS, SUITE, Case, replaced

COLD = CHECKS + '  - {id: "suites/test_heat.py::test_cold", subject: gpu, phases: [test]}\n'
COLD_TEST = SUITE + '\n\n@pytest.mark.phase("test")\ndef test_cold(gpu):\n    assert gpu\n'

CASES: dict[str, Case] = {
    "ASY0060": Case(
        {"specs/checks.yaml": COLD},
        {"specs/checks.yaml": COLD, "suites/test_heat.py": COLD_TEST},
        "specs/checks.yaml:6:5",
    ),
    "ASY0061": Case(
        {"suites/test_heat.py": COLD_TEST},
        replaced("suites/test_heat.py", COLD_TEST, "test_cold", "cold"),
        "suites/test_heat.py:13:1",
    ),
    "ASY0062": Case({"specs/checks.yaml": CHECKS + CHECKS.splitlines()[-1] + "\n"}, {}, "specs/checks.yaml:6:5"),
    "ASY0063": Case({"suites/test_bad.py": "def t(:\n"}, {"suites/bad.py": "def t(:\n"}, "suites/test_bad.py:1:7"),
    "ASY0064": Case(replaced("specs/checks.yaml", CHECKS, "gpu.hot", "gpu.hut"), {}, "specs/checks.yaml:5:5"),
    "ASY0065": Case(
        replaced("specs/faults.yaml", FAULTS, "  gpu.hot:", "  gpu.cold:"),
        replaced("specs/faults.yaml", FAULTS, "  gpu.hot: {", "  gpu.cold: {xid: [3], "),
        "specs/faults.yaml:7:3",
    ),
    "ASY0066": Case(
        replaced("specs/checks.yaml", CHECKS, "[production]", "[production], active: true"),
        {
            **replaced("specs/checks.yaml", CHECKS, "[production]", "[production], active: true"),
            **replaced("suites/test_heat.py", SUITE, '")\ndef', '")\n@pytest.mark.active\ndef'),
        },
        "specs/checks.yaml:5:5",
    ),
    "ASY0398": Case(
        replaced("suites/test_heat.py", SUITE, "gpu, limits", "gpu, bmc, limits"),
        {
            **replaced("suites/test_heat.py", SUITE, "gpu, limits", "gpu, bmc, limits"),
            **replaced("specs/checks.yaml", CHECKS, "phases: [production]", "phases: [production], needs: [bmc]"),
        },
        "specs/checks.yaml:5:5",
    ),
    "ASY0067": Case(
        {"specs/checks.yaml": COLD},
        replaced("specs/checks.yaml", COLD, "[test]", "[test, production]"),
        "specs/checks.yaml:6:5",
    ),
    "ASY0122": Case(
        replaced("specs/checks.yaml", CHECKS, "[production]", "[production], report_only: true"),
        {"specs/checks.yaml": COLD.replace("[test]}", "[weekly], report_only: true}")},
        "specs/checks.yaml:5:5",
    ),
    "ASY0176": Case(
        replaced("specs/checks.yaml", CHECKS, "[production]", "[production], valid_hours: 0.9"),
        replaced("specs/checks.yaml", CHECKS, "[production]", "[production], valid_hours: 1"),
        "specs/checks.yaml:5:5",
    ),
    "ASY0177": Case(
        replaced("suites/test_heat.py", SUITE, '")\ndef', '")\n@pytest.mark.flaky(reruns=3)\ndef'),
        replaced("suites/test_heat.py", SUITE, '")\ndef', '")\n@pytest.mark.passive\ndef'),
        "suites/test_heat.py:9:1",
    ),
    "ASY0246": Case(
        replaced("specs/checks.yaml", CHECKS, "subject: gpu", "subject: hca"),
        replaced("suites/test_heat.py", SUITE, "gpu, limits", "our_own_part"),
        "specs/checks.yaml:5:5",
    ),
}
