"""Every code has the smallest fleet that triggers it, and one just beside it that does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from assay.fleet.check import problems
from assay.fleet.rules.book import rule, rules

SMALLEST = Path(__file__).parent / "smallest"
POOL = (SMALLEST / "inventory/pool.yml").read_text()
NODE = (SMALLEST / "specs/node.yaml").read_text()
BUNDLE = (SMALLEST / "specs/bundle.yaml").read_text()
POLICY = (SMALLEST / "specs/policy.yaml").read_text()
FAULTS = (SMALLEST / "specs/faults.yaml").read_text()
CHECKS = (SMALLEST / "specs/checks.yaml").read_text()
SUITE = (SMALLEST / "suites/test_heat.py").read_text()
SECOND = """  - name: bios
    version: "2"
    inventory: [BIOS]
    artifact: firmware/bmc.bin
    sha256: ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
    push: simple
    reset: host
    order: 2
"""
FABRIC = """
kind: FabricDesign
name: net
nodes: [n1, n2]
rails: 1
rate: 4xNDR
switch: {product: S, ports: 8}
leaves: {name: leaf, down: 1..2, up: 3..4, at: [{guid: "0x0000000000000001", rack: n1, u: 1}]}
spines: {name: spine, per_pair: 2, at: [{guid: "0x0000000000000002", rack: n1, u: 2}]}
"""
GUID = '"0xa088c203009a0106"'
HCA = 'hcas: [{name: mlx5_0, rail: 0, pci: "0000:18:00.0"}]'
RAIL = {"specs/node.yaml": NODE.replace("hcas: []", HCA)}


Write = Callable[[Mapping[str, "str | None"]], Path]


TWO = BUNDLE + SECOND
COLD = CHECKS + '  - {id: "suites/test_heat.py::test_cold", subject: gpu, phases: [test]}\n'
COLD_TEST = SUITE + '\n\n@pytest.mark.phase("test")\ndef test_cold(gpu):\n    assert gpu\n'
IDLE = NODE + "  idle: {value: 1, unit: W, source: us}\n"
IDLE_TEST = SUITE + "    assert limits.idle\n"
LOW = NODE + "  gpu_temperature_low: {value: 5, unit: °C, source: us}\n"
LOW_TEST = SUITE + "    assert limits.gpu_temperature_low\n"
ATTIC = POLICY.replace("edges:", "  attic: {summary: lost}\nedges:\n  attic: [production]")
ARRIVAL = POLICY.replace("onboard", "arrival")
HOT = POLICY.replace("faults:\n", "faults:\n  hot: {classes: [gpu.hot], timing: record}\n")
FIRST_BMC = POOL.replace("rack:", "bmc_address: 10.0.0.1, rack:", 1)
FIRST_GUID = POOL.replace("rack:", f"hca_guids: [{GUID}], rack:", 1)


class Case(NamedTuple):
    """What changes in the smallest fleet to trigger a code, where it is said, and what is close but right."""

    wrong: dict[str, str | None]
    right: dict[str, str | None]
    where: str


def pool(old: str, new: str) -> dict[str, str | None]:
    """Return the inventory with one thing replaced, which must be there."""
    return one("inventory/pool.yml", POOL, old, new)


def one(file: str, text: str, old: str, new: str) -> dict[str, str | None]:
    """Return a file with one thing replaced, which must be there."""
    assert old in text
    return {file: text.replace(old, new, 1)}


FIRST_NODE = "inventory/pool.yml:4:73"
CASES: dict[str, Case] = {
    # what cannot be read
    "ASY0001": Case({"specs/x.yaml": "a: 1\na: 2\n"}, {"specs/x.txt": "a: 1\na: 2\n"}, "specs/x.yaml:2:1"),
    "ASY0002": Case(one("specs/node.yaml", NODE, "NodeSpec", "NodeSpek"), {}, "specs/node.yaml:2:1"),
    "ASY0003": Case(
        one("specs/node.yaml", NODE, "fans: 1", "fans: one"),
        one("specs/node.yaml", NODE, "fans: 1", "fans: 2"),
        "specs/node.yaml:10:1",
    ),
    "ASY0010": Case(
        pool("  hosts", "  var: {}\n  hosts"), pool("  hosts", "  vars: {}\n  hosts"), "inventory/pool.yml:3:3"
    ),
    "ASY0011": Case({"inventory/pool.yml": "# nobody\n"}, {}, "inventory"),
    "ASY0012": Case(pool("u: 2", 'u: "2"'), pool("u: 2", "u: 3"), "inventory/pool.yml:5:67"),
    "ASY0013": Case({"inventory/pool.yml": POOL + "    n3: {}\n"}, {}, "inventory/pool.yml:6:5"),
    # names
    "ASY0020": Case(
        {"specs/zzz.yaml": NODE}, one("specs/zzz.yaml", NODE, "name: small", "name: large"), "specs/zzz.yaml:3:1"
    ),
    "ASY0021": Case(pool("node_spec: small", "node_spec: smal"), {}, "inventory/pool.yml:4:10"),
    "ASY0022": Case(pool("profile: managed", "profile: other"), {}, "inventory/pool.yml:4:28"),
    "ASY0023": Case(
        pool("u: 1,", "u: 1, fabric: net,"),
        {**pool("u: 1,", "u: 1, fabric: net,"), "specs/fabric.yaml": FABRIC},
        FIRST_NODE,
    ),
    "ASY0024": Case(one("specs/node.yaml", NODE, "firmware: bundle", "firmware: bundel"), {}, "specs/node.yaml:15:1"),
    "ASY0025": Case(
        one("specs/fabric.yaml", FABRIC, "[n1, n2]", "[n1, n3]"), {"specs/fabric.yaml": FABRIC}, "specs/fabric.yaml:4:1"
    ),
    "ASY0026": Case(pool("u: 1,", "u: 1, workloads: slurn,"), pool("u: 1,", "u: 1, workloads: none,"), FIRST_NODE),
    # nodes
    "ASY0030": Case(pool("S2", "S1"), pool("S2", "S3"), "inventory/pool.yml:5:73"),
    "ASY0031": Case(
        {"inventory/pool.yml": POOL.replace("rack:", "bmc_address: 10.0.0.1, rack:")},
        {"inventory/pool.yml": FIRST_BMC.replace("rack: r1, u: 2", "bmc_address: 10.0.0.2, rack: r1, u: 2")},
        "inventory/pool.yml:5:57",
    ),
    "ASY0032": Case(
        {"inventory/pool.yml": POOL.replace("rack:", f"hca_guids: [{GUID}], rack:")},
        {"inventory/pool.yml": FIRST_GUID.replace("u: 2", f"hca_guids: [{GUID.replace('06', '16')}], u: 2")},
        "inventory/pool.yml:5:57",
    ),
    "ASY0033": Case(pool("u: 2", "u: 1"), pool("rack: r1, u: 2", "rack: r2, u: 1"), "inventory/pool.yml:5:67"),
    "ASY0034": Case(
        {"inventory/pool.yml": POOL + "pool-b:\n  hosts: {n2: }\n"},
        {"inventory/pool.yml": POOL + "pool-b:\n  hosts: {n2: {pool: pool-b}}\n"},
        "inventory/pool.yml:5:5",
    ),
    "ASY0035": Case(
        {"inventory/pool.yml": FIRST_GUID},
        {"inventory/pool.yml": FIRST_GUID.replace("u: 2", f"hca_guids: [{GUID.replace('06', '16')}], u: 2"), **RAIL},
        "inventory/pool.yml:4:57",
    ),
    "ASY0036": Case(
        pool("u: 2", "u: 2, bmc_adress: 10.0.0.1"), pool("u: 2", "u: 2, our_own: 1"), "inventory/pool.yml:5:73"
    ),
    # firmware
    "ASY0040": Case({"firmware/bmc.bin": None}, {}, "specs/bundle.yaml:8:5"),
    "ASY0041": Case({"firmware/bmc.bin": "abd"}, {"firmware/other.bin": "abd"}, "specs/bundle.yaml:9:5"),
    "ASY0042": Case(
        one("specs/bundle.yaml", TWO, "[BIOS]", "[BIOS, BMC]"), {"specs/bundle.yaml": TWO}, "specs/bundle.yaml:15:5"
    ),
    "ASY0043": Case(
        one("specs/bundle.yaml", TWO, "order: 2", "order: 1"),
        one("specs/bundle.yaml", TWO, "reset: host\n    order: 2", "reset: bmc\n    order: 1"),
        "specs/bundle.yaml:19:5",
    ),
    "ASY0044": Case(
        one("specs/bundle.yaml", TWO, "name: bios", "name: bmc"), {"specs/bundle.yaml": TWO}, "specs/bundle.yaml:13:5"
    ),
    # limits
    "ASY0050": Case(
        one("specs/node.yaml", NODE, "value: 85", "value: 850"),
        one("specs/node.yaml", NODE, "value: 85", "value: 95"),
        "specs/node.yaml:17:3",
    ),
    "ASY0051": Case(
        {**one("specs/node.yaml", LOW, "value: 5", "value: 85"), "suites/test_heat.py": LOW_TEST},
        {"specs/node.yaml": LOW, "suites/test_heat.py": LOW_TEST},
        "specs/node.yaml:18:3",
    ),
    "ASY0052": Case(
        {"specs/node.yaml": IDLE}, {"specs/node.yaml": IDLE, "suites/test_heat.py": IDLE_TEST}, "specs/node.yaml:18:3"
    ),
    "ASY0053": Case(
        {"suites/test_heat.py": IDLE_TEST},
        one("suites/test_heat.py", IDLE_TEST, "limits.idle", "spec.idle"),
        "suites/test_heat.py:10:12",
    ),
    # suites
    "ASY0060": Case(
        {"specs/checks.yaml": COLD},
        {"specs/checks.yaml": COLD, "suites/test_heat.py": COLD_TEST},
        "specs/checks.yaml:6:5",
    ),
    "ASY0061": Case(
        {"suites/test_heat.py": COLD_TEST},
        one("suites/test_heat.py", COLD_TEST, "test_cold", "cold"),
        "suites/test_heat.py:13:1",
    ),
    "ASY0062": Case({"specs/checks.yaml": CHECKS + CHECKS.splitlines()[-1] + "\n"}, {}, "specs/checks.yaml:6:5"),
    "ASY0063": Case({"suites/test_bad.py": "def t(:\n"}, {"suites/bad.py": "def t(:\n"}, "suites/test_bad.py:1:7"),
    "ASY0064": Case(one("specs/checks.yaml", CHECKS, "gpu.hot", "gpu.hut"), {}, "specs/checks.yaml:5:5"),
    "ASY0065": Case(
        one("specs/faults.yaml", FAULTS, "  gpu.hot:", "  gpu.cold:"),
        one("specs/faults.yaml", FAULTS, "  gpu.hot: {", "  gpu.cold: {xid: [3], "),
        "specs/faults.yaml:7:3",
    ),
    "ASY0066": Case(
        one("specs/checks.yaml", CHECKS, "[production]", "[production], active: true"),
        {
            **one("specs/checks.yaml", CHECKS, "[production]", "[production], active: true"),
            **one("suites/test_heat.py", SUITE, '")\ndef', '")\n@pytest.mark.active\ndef'),
        },
        "specs/checks.yaml:5:5",
    ),
    # policy
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


@pytest.mark.parametrize("code", CASES)
def test_the_smallest_fleet_with_the_mistake_is_told_so_at_its_place(code: str, fleet_with: Write) -> None:
    found = [problem for problem in problems(fleet_with(CASES[code].wrong)) if problem.code == code]
    assert [problem.where for problem in found][:1] == [CASES[code].where]
    assert all(problem.message and problem.fix for problem in found)


@pytest.mark.parametrize("code", CASES)
def test_the_fleet_beside_it_is_left_in_peace(code: str, fleet_with: Write) -> None:
    assert [problem for problem in problems(fleet_with(CASES[code].right)) if problem.code == code] == []


def test_a_fabric_is_not_blamed_for_nodes_that_could_not_be_read(fleet_with: Write) -> None:
    found = problems(fleet_with({"specs/fabric.yaml": FABRIC, "inventory/pool.yml": POOL + "  hosts: {}\n"}))
    assert [problem.code for problem in found] == ["ASY0001"]


def test_every_rule_of_the_book_has_its_case() -> None:
    assert set(CASES) == set(rules())


def test_the_smallest_fleet_has_no_problem(fleet_with: Write) -> None:
    assert problems(fleet_with({})) == []


def test_every_rule_says_what_it_is_and_why() -> None:
    for entry in rules().values():
        assert entry.title
        assert entry.why.endswith((".", "?"))
        assert entry.code.startswith("ASY")


def test_a_code_cannot_be_given_twice() -> None:
    with pytest.raises(ValueError, match="ASY0020 is given twice"):
        rule("ASY0020", "again", why="Never.")(lambda draft: [])
