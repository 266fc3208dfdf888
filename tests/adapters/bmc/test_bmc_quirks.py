"""Vendors differ: what a BMC says of itself decides which quirks count, and the quirks how it is read."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from assay.adapters.bmc.quirks import STANDARD_DIALECT, BmcQuirkSet
from assay.declare.loader import load_fleet
from assay.model.specs.bmc_quirks import BmcQuirks
from assay.observe.evidence_collector import read_bmc_channel
from tests.support.places import ROOT

KNOWN = load_fleet(ROOT).quirks


def quirks(**entries: dict[str, Any]) -> BmcQuirkSet:
    told = {"why": "a test", "owner": "us", "source": "this file"}
    plain = {name: {**told, **entry} for name, entry in entries.items()}
    return BmcQuirkSet([BmcQuirks.model_validate({"kind": "BmcQuirks", "name": "t", "quirks": plain})])


def read(tiny: Any, ca_file: Path, known: BmcQuirkSet, deadline_s: float = 5.0) -> dict[str, Any]:
    return read_bmc_channel(tiny.node(bmc_ca=str(ca_file)), Path(), deadline_s, quirks=known)


@pytest.fixture
def acme(tiny: Any) -> Any:
    """The small BMC, which says who made it."""
    tiny.tree["/redfish/v1"] |= {"Vendor": "ACME Inc ", "Product": "Box Controller"}
    links = {
        name: [{"@odata.id": f"/redfish/v1/{path}"}] for name, path in (("Chassis", "Chassis/Box"), ("ManagedBy", "M"))
    }
    tiny.tree["/redfish/v1/Systems/Host"] |= {"Manufacturer": "ACME", "Links": links}
    tiny.tree["/redfish/v1/M"] = {"@odata.id": "/redfish/v1/M", "FirmwareVersion": "2.4"}
    return tiny


def test_without_a_quirk_that_fits_a_bmc_is_read_as_the_standard_says() -> None:
    assert (
        quirks(other={"applies": {"vendor": "Other*"}, "expand": False}).dialect_of({"vendor": "ACME"})
        == STANDARD_DIALECT
    )
    assert quirks(nobody={"applies": {}, "expand": False}).dialect_of({"vendor": "ACME"}) == STANDARD_DIALECT


def test_a_quirk_needs_all_that_it_names_and_nothing_is_guessed() -> None:
    known = quirks(old={"applies": {"vendor": "acme*", "bmc_version": "2.*"}, "slow": 3})
    assert known.dialect_of({"vendor": "ACME Inc"}).slow == 1
    assert known.dialect_of({"vendor": "ACME Inc", "bmc_version": "3.0"}).slow == 1
    assert known.dialect_of({"vendor": "ACME Inc", "bmc_version": "2.4"}).slow == 3


def test_a_later_quirk_has_the_last_word_and_the_others_stay() -> None:
    known = quirks(
        a={"applies": {"vendor": "A*"}, "slow": 2, "expand": False}, b={"applies": {"product": "B*"}, "slow": 4}
    )
    ways = known.dialect_of({"vendor": "Acme", "product": "Box"})
    assert (ways.slow, ways.expand, ways.applied_quirks) == (4, False, ("a", "b"))
    assert known.largest_deadline_factor == 4


def test_a_document_that_extends_another_stands_in_its_place() -> None:
    base = KNOWN["bmc"]
    site = base.model_copy(update={"name": "site", "extends": "bmc", "quirks": {}})
    said = {"product": "AMI Redfish Server", "manufacturer": "NVIDIA", "model": "DGXH100"}
    assert BmcQuirkSet([base]).dialect_of(said).applied_quirks == ("ami-dgx-h100",)
    assert BmcQuirkSet([base, site]).dialect_of(said).applied_quirks == ()


def test_every_quirk_of_the_example_says_who_looks_after_it_and_where_it_was_seen() -> None:
    for quirk in KNOWN["bmc"].quirks.values():
        assert quirk.owner
        assert len(quirk.source) > 20


@pytest.mark.parametrize(
    "wrong",
    [
        {"slow": 0.5},
        {"login": "token"},
        {"firmware": [{"id": "("}]},
        {"firmware": [{"id": ".*", "version": "(?P<version>"}]},
        {"nonsense": 1},
    ],
)
def test_a_quirk_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        quirks(one={"applies": {"vendor": "A"}, **wrong})


def test_a_bmc_that_cannot_expand_is_not_asked_to(acme: Any, ca_file: Path) -> None:
    acme.tree["/redfish/v1"]["ProtocolFeaturesSupported"] = {"ExpandQuery": {"NoLinks": True}}
    read(acme, ca_file, BmcQuirkSet())
    assert any("expand" in path for path in acme.asked)
    acme.asked.clear()
    read(acme, ca_file, quirks(one={"applies": {"vendor": "acme inc"}, "expand": False}))
    assert not any("expand" in path for path in acme.asked)


def test_a_bmc_that_opens_no_session_is_asked_with_basic_credentials(acme: Any, ca_file: Path) -> None:
    acme.basic = True
    sessions = "/redfish/v1/SessionService/Sessions"
    acme.tree[sessions] = {"Members": []}
    acme.odd[sessions] = lambda call: acme.status(401 if call.command == "POST" else 200)(call)
    assert "refuses the user or the password" in read(acme, ca_file, BmcQuirkSet())["failed"]
    acme.asked.clear()
    tree = read(acme, ca_file, quirks(one={"applies": {"product": "Box*"}, "login": "basic"}))
    assert tree["system"]["power"] == {"value": "On"}
    assert not any(path.startswith("POST") for path in acme.asked)


def test_a_bmc_whose_root_offers_no_sessions_is_asked_with_basic_credentials(acme: Any, ca_file: Path) -> None:
    acme.basic = True
    acme.tree["/redfish/v1"] = {name: part for name, part in acme.tree["/redfish/v1"].items() if name != "Links"}
    assert read(acme, ca_file, BmcQuirkSet())["system"]["power"] == {"value": "On"}
    assert not any(path.startswith("POST") for path in acme.asked)


def test_the_event_log_is_where_the_quirk_says(acme: Any, ca_file: Path) -> None:
    entry = {"@odata.id": "/e", "Id": "9", "Message": "here", "Created": "2026-11-20T08:00:00Z"}
    acme.tree["/redfish/v1/Managers/M"] = acme.tree["/redfish/v1/M"] | {"@odata.id": "/redfish/v1/Managers/M"}
    acme.tree["/redfish/v1/Managers/M"] |= {"LogServices": {"@odata.id": "/redfish/v1/L"}}
    acme.tree["/redfish/v1/Systems/Host"]["Links"]["ManagedBy"] = [{"@odata.id": "/redfish/v1/Managers/M"}]
    acme.tree["/redfish/v1/L"] = {"Members": [{"Id": "Journal", "Entries": {"@odata.id": "/redfish/v1/E"}}]}
    acme.tree["/redfish/v1/E"] = {"Members": [entry]}
    known = quirks(one={"applies": {"manufacturer": "ACME"}, "logs": ["Managers/M/LogServices/Journal"]})
    assert "here" in [event["message"] for event in read(acme, ca_file, known)["events"]["value"]]
    left_out = quirks(one={"applies": {"manufacturer": "ACME"}, "logs_left_out": ["Systems/*/LogServices/SEL"]})
    assert "unsupported" in read(acme, ca_file, left_out)["events"]


def test_sensors_that_mean_the_whole_box_are_taken_by_name(acme: Any, ca_file: Path) -> None:
    box = acme.tree["/redfish/v1/Chassis/Box"]
    box["Sensors"] = {"@odata.id": "/redfish/v1/S"}
    air = {"@odata.id": "/s1", "Id": "AMBIENT", "ReadingType": "Temperature", "Reading": 21}
    meter = {"@odata.id": "/s2", "Id": "METER", "ReadingType": "Power", "Reading": 4200}
    gone = {"@odata.id": "/s3", "Id": "OLD", "ReadingType": "Power", "Reading": None, "Status": {"State": "Absent"}}
    dead = {"@odata.id": "/s4", "Id": "DEAD", "ReadingType": "Voltage", "Reading": None}
    acme.tree["/redfish/v1/S"] = {"Members": [air, meter, gone, dead]}
    known = quirks(one={"applies": {"vendor": "ACME*"}, "inlet_sensor": "AMBIENT", "power_sensor": "METER"})
    tree = read(acme, ca_file, known)
    assert tree["sensor"]["inlet_c"] == {"value": 21}
    assert tree["power"]["drawn_w"] == {"value": 4200}
    assert tree["sensor"]["offline"] == {"value": ["OLD"]}
    assert "failed" in tree["sensor"]["voltage"]["DEAD"]["v"]
    known = quirks(one={"applies": {"vendor": "ACME*"}, "inlet_sensor": "NOSUCH"})
    reason = "the chassis has no sensor NOSUCH"
    assert read(acme, ca_file, known)["sensor"]["inlet_c"] == {"unsupported": reason}


def test_the_older_schema_is_read_where_the_newer_one_is_no_good(acme: Any, ca_file: Path) -> None:
    box = acme.tree["/redfish/v1/Chassis/Box"]
    box["Power"], box["Thermal"] = {"@odata.id": "/redfish/v1/P"}, {"@odata.id": "/redfish/v1/T"}
    volts = {"Name": "12V", "ReadingVolts": 12.1, "LowerThresholdCritical": 10.8, "UpperThresholdCritical": 13.2}
    control = {"PowerConsumedWatts": 3100, "PowerLimit": {"LimitInWatts": 5000}}
    acme.tree["/redfish/v1/P"] = {"PowerSupplies": [], "Voltages": [volts], "PowerControl": [control]}
    heat = {"Name": "Inlet", "PhysicalContext": "Intake", "ReadingCelsius": 25, "UpperThresholdNonCritical": 38}
    acme.tree["/redfish/v1/T"] = {"Fans": [], "Temperatures": [heat]}
    tree = read(acme, ca_file, quirks(one={"applies": {"vendor": "ACME*"}, "readings": "thermal-power"}))
    assert tree["sensor"]["temperature"] == {"Inlet": {"c": {"value": 25}, "high_c": {"value": 38}}}
    assert tree["sensor"]["voltage"]["12V"] == {
        "v": {"value": 12.1},
        "high_v": {"value": 13.2},
        "low_v": {"value": 10.8},
    }
    assert tree["power"] == {"drawn_w": {"value": 3100}, "capped": {"value": True}, "cap_w": {"value": 5000}}


@pytest.mark.parametrize(("factor", "seen"), [(1, "failed"), (10, "system")])
def test_a_slow_bmc_has_longer(acme: Any, ca_file: Path, factor: float, seen: str) -> None:
    def late(call: BaseHTTPRequestHandler) -> None:
        del acme.odd["/redfish/v1/Systems"]
        acme.closing.wait(1.0)
        call.do_GET()  # type: ignore[attr-defined]

    acme.odd["/redfish/v1/Systems"] = late
    assert seen in read(acme, ca_file, quirks(one={"applies": {"vendor": "ACME*"}, "slow": factor}), 0.7)
