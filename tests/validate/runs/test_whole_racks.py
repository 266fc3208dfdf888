"""A rack of rack-scale nodes is one subject of all its nodes, through real collection."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from assay.declare.loader import load_fleet
from assay.validate.runs.subjects import NodeSelection, list_declared_checks

pytest_plugins = ["pytester"]

SUITE = '''
"""What a rack is."""
import pytest

pytestmark = [pytest.mark.phase("production"), pytest.mark.passive]


@pytest.mark.fault("gpu.missing")
def test_rack(rack, spec, measure):
    """Look at every node."""
    measure("nodes", len([node.host.boot_id for node in rack.nodes]), equals=spec.rack.nodes)


@pytest.mark.fault("gpu.missing")
def test_whole(whole_rack, measure):
    """Look at every node of a rack that is one machine."""
    measure("nodes", len([node.host.boot_id for node in whole_rack.nodes]), equals=18)
'''
TRAYS = [f"t{number:02}" for number in range(1, 19)]


@pytest.fixture
def trays(fleet_copy):
    """A fleet with one rack of eighteen GB200 trays, and one of two HGX nodes."""
    for file in (fleet_copy.root / "inventory").iterdir():
        file.unlink()
    for name, rack, spec in (
        *((tray, "nvl", "gb200-nvl72") for tray in TRAYS),
        *((h, "hgx", "hgx-h100") for h in "ab"),
    ):
        host = {"rack": rack, "u": 1, "serial_number": name, "node_spec": spec, "profile": "managed", "site": "lab1"}
        _add(fleet_copy.root / "inventory" / "pool.yml", name, host)
    fleet_copy.suite(SUITE)
    fleet_copy.collected(*TRAYS, "a", "b")
    return fleet_copy


def _add(path: Path, name: str, host: dict[str, object]) -> None:
    pool = yaml.safe_load(path.read_text()) if path.exists() else {"pool": {"hosts": {}}}
    pool["pool"]["hosts"][name] = host
    path.write_text(yaml.safe_dump(pool))


def test_eighteen_trays_in_a_rack_are_one_subject(trays) -> None:
    outcomes = {(one.check.split("::")[1], one.subject): one for one in trays.outcomes("-k", "nvl")}
    assert {subject for _, subject in outcomes} == {"pool/rack-nvl"}
    assert [one.verdict for one in outcomes.values()] == ["pass", "pass"]
    assert [one.measurements[0].value for one in outcomes.values()] == [18, 18]


def test_only_racks_that_are_one_machine_are_whole_racks(trays) -> None:
    found = {(one.check.split("::")[1], one.subject) for one in trays.outcomes()}
    assert ("test_rack", "pool/rack-hgx") in found
    assert {subject for test, subject in found if test == "test_whole"} == {"pool/rack-nvl"}


def test_what_is_promised_is_what_is_collected(trays) -> None:
    fleet = load_fleet(trays.root)
    selection = NodeSelection(fleet, tuple(fleet.nodes))
    checks = [check for check in list_declared_checks(fleet, {"production"}) if check.subject == "whole_rack"]
    owed = [str(subject) for check in checks for subject, _ in selection.due_subjects(check)]
    declared = [check.id for catalog in fleet.check_catalogs.values() for check in catalog.checks]
    assert owed == ["pool/rack-nvl"] * sum("test_whole_rack" in check for check in declared)


def test_a_part_of_a_rack_is_not_judged_as_the_whole(trays) -> None:
    assert [one for one in trays.outcomes("--assay-node", "t01") if "rack" in one.check] == []
