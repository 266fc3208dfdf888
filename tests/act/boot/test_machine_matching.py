"""Which node a seen machine is, and what contradicts it."""

from __future__ import annotations

from typing import Any

import pytest

from assay.act.boot.matching import MachineRegister, Sighting, find_unseen, match_machines
from assay.declare.loader import load_fleet
from assay.model.fleet import Fleet
from assay.model.specs.machines import SeenMachine
from tests.support.places import ROOT

NEW, NEW_MAC = "A520112X4400021", "02:00:5e:00:21:00"
ORDERED: dict[str, Any] = {"vendor": "Virtual", "model": "HGX H100 of the lab"}
TABLE: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "one of a delivery": ({"serial": NEW, "bmc_mac": NEW_MAC, **ORDERED}, "expected", "n0021", ""),
    "its place is right": ({"serial": NEW, "rack": "r06", "u": 4}, "expected", "n0021", ""),
    "its letters are large": ({"bmc_mac": NEW_MAC.upper().replace(":", "-")}, "expected", "n0021", ""),
    "a node": ({"serial": "A520112X4400017"}, "node", "n0017", ""),
    "in another slot": ({"serial": NEW, "rack": "r06", "u": 14}, "misplaced", "n0021", "it belongs at r06 U4"),
    "at a node's address": ({"serial": NEW, "address": "10.20.1.27"}, "misplaced", "n0021", "the address of n0017"),
    "of two machines": ({"serial": NEW, "bmc_mac": "02:00:5e:00:22:00"}, "contradiction", "n0021", "that of n0022"),
    "another board": ({"serial": NEW, "bmc_mac": "02:00:5e:00:99:00"}, "contradiction", "n0021", "was the board exch"),
    "another machine": ({"serial": "OTHER", "bmc_mac": NEW_MAC}, "contradiction", "n0021", "is serial OTHER"),
    "another model": (
        {"serial": NEW, "model": "HGX B200"},
        "contradiction",
        "n0021",
        "HGX H100 of the lab was ordered",
    ),
    "unknown": ({"serial": "OTHER", "address": "10.9.9.9"}, "stranger", "", ""),
    "unknown, in a node's place": ({"address": "10.20.1.27"}, "stranger", "", "the address of n0017"),
}


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    """The example fleet, which expects two machines."""
    return load_fleet(ROOT)


@pytest.mark.parametrize("case", TABLE)
def test_a_seen_machine_is_known_by_what_it_says(case: str, fleet: Fleet) -> None:
    said, verdict, node, problem = TABLE[case]
    (match,) = match_machines([SeenMachine.parse(said)], fleet)
    assert (match.verdict, match.node) == (verdict, node)
    assert problem in "; ".join(match.problems)
    assert bool(problem) == bool(match.problems)


def test_two_machines_of_one_serial_number_are_a_contradiction(fleet: Fleet) -> None:
    twins = [SeenMachine(serial=NEW, bmc_mac=NEW_MAC), SeenMachine(serial=NEW, bmc_mac="02:00:00:00:00:01")]
    for match in match_machines(twins, fleet):
        assert match.verdict == "contradiction"
        assert f"another machine says {NEW} of itself too" in match.problems


def test_what_nobody_has_seen_is_listed(fleet: Fleet) -> None:
    matches = match_machines([SeenMachine(serial=NEW)], fleet)
    assert [machine.name for machine in find_unseen(matches, fleet)] == ["n0022"]


def list_seen(*machines: SeenMachine) -> list[SeenMachine]:
    return [sighting.machine for sighting in MachineRegister(map(Sighting, machines)).sightings]


def test_a_lease_and_a_later_look_at_the_bmc_are_one_machine() -> None:
    lease = SeenMachine(bmc_mac=NEW_MAC, address="10.0.0.7")
    look = SeenMachine(address="10.0.0.7", serial=NEW, model="M")
    assert list_seen(lease, look) == [SeenMachine("10.0.0.7", NEW_MAC, NEW, "", "M")]


def test_an_address_that_another_machine_got_later_is_not_the_first_machine() -> None:
    first = SeenMachine("10.0.0.7", "02:00:00:00:00:01", "S1")
    second = SeenMachine("10.0.0.7", "02:00:00:00:00:02", "S2")
    assert list_seen(first, second) == [first, second]


def test_a_machine_may_say_anything_of_itself() -> None:
    said = {"serial": "x" * 10_000, "u": "<script>", "rack": 7, "model": None, "strange": []}
    assert SeenMachine.parse(said) == SeenMachine(serial="x" * 200, rack="7")
    assert SeenMachine.parse({"vendor": " Ev\x1b]0;owned\x07il\n"}) == SeenMachine(vendor="Ev]0;ownedil")
