"""Addresses and serial numbers in other spellings are the same; a problem in a list stands at its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from assay.declare.check import check_repository
from assay.declare.rules.inventory import find_address_fix
from tests.declare.rules.cases.case import POOL

Write = Callable[[Mapping[str, "str | None"]], Path]
GUIDS = ["0xa088c203009a0106", "0xa088c203009a01166", "0xa088c203009a0106"]


@pytest.mark.parametrize(
    "written",
    ["10.20.0.012", "10.20.12", "10.20.0.256", "10.20.0.1.", "169345027", "0x0a140001", "0xa.20.0.1", "fd00:0::1",
     "FD00::1", "fd00::1::2", "BMC1.example.org", "bmc1.example.org.", "0.0.0.0", "224.0.0.1", "::", "ff02::1",
     "fe80::1", "[fd00::1]", "[fd00::1]:8443", "10.20.0.12:9400", "bmc1.example.org:443", "10.20.0.12:"],
)  # fmt: skip
def test_an_address_in_another_form_than_its_one_form_is_refused_with_the_right_one(written: str) -> None:
    assert find_address_fix(written).startswith("write ")


def test_a_port_within_an_address_is_told_where_it_belongs() -> None:
    assert find_address_fix("[fd00::1]:8443") == "write fd00::1, and 8443 as bmc_port or ansible_port"
    assert find_address_fix("10.20.0.12:9400") == "write 10.20.0.12, and 9400 as bmc_port or ansible_port"


@pytest.mark.parametrize("written", ["10.20.0.12", "1.0.0.0", "fd00::1", "::1", "bmc1.example.org", "bmc-1", "1st.bmc"])
def test_an_address_in_its_one_form_is_left_in_peace(written: str) -> None:
    assert find_address_fix(written) == ""


@pytest.mark.parametrize(
    ("code", "first", "second"),
    [
        ("ASY0031", 'bmc_address: "fd00::1"', 'bmc_address: "fd00:0::1"'),
        ("ASY0031", 'bmc_address: "fd00::a"', 'bmc_address: "FD00::A"'),
        ("ASY0031", "bmc_address: bmc.example.org", "bmc_address: BMC.example.org"),
        ("ASY0030", "serial_number: S9a", "serial_number: s9A"),
        ("ASY0030", "serial_number: S9", 'serial_number: " S9 "'),
    ],
)
def test_one_thing_in_two_spellings_is_given_twice(code: str, first: str, second: str, fleet_with: Write) -> None:
    text = POOL
    for number, variable in ((1, first), (2, second)):
        old = f"serial_number: S{number}"
        text = text.replace(old, variable if variable.startswith("serial") else f"{old}, {variable}")
    assert code in [problem.code for problem in check_repository(fleet_with({"inventory/pool.yml": text})).problems]


def test_a_problem_in_a_list_stands_at_the_line_of_its_value(fleet_with: Write) -> None:
    lines = "".join(f'        - "{guid}"\n' for guid in GUIDS)
    added = POOL.rstrip() + (
        "\n    n3:\n      {node_spec: small, profile: managed, site: lab, rack: r1, u: 3, serial_number: S3}\n"
    ).replace("\n      {", "\n      ").replace(", ", "\n      ").replace("}", f"\n      hca_guids:\n{lines}")
    found = check_repository(fleet_with({"inventory/pool.yml": added})).problems
    assert [(problem.code, problem.line) for problem in found] == [("ASY0012", 15)]
    found = check_repository(fleet_with({"inventory/pool.yml": added.replace("166", "16")})).problems
    assert [(problem.code, problem.line) for problem in found if problem.code == "ASY0032"] == [("ASY0032", 16)]
