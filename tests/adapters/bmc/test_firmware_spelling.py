"""Vendors spell one version in many ways; equal firmware reads equal, and nothing that is not a version does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.adapters.bmc.firmware import normalize_firmware_entry
from assay.adapters.bmc.quirks import STANDARD_FIRMWARE_RULES, BmcQuirkSet
from assay.declare.loader import load_fleet
from assay.model.specs.bmc_quirks import FirmwareSpellingRule
from assay.observe.evidence_collector import read_bmc_channel
from tests.support.places import ROOT

QUIRKS = BmcQuirkSet(load_fleet(ROOT).quirks.values())
DELL = QUIRKS.dialect_of({"vendor": "Dell"}).firmware
AMI = QUIRKS.dialect_of({"product": "AMI Redfish Server", "manufacturer": "NVIDIA", "model": "DGXH100"}).firmware
SUPERMICRO = QUIRKS.dialect_of({"manufacturer": "Supermicro"}).firmware


@pytest.mark.parametrize(
    ("rules", "ident", "version", "part", "read"),
    [
        ((), "BMC", " 01.05.11  ", "BMC", "01.05.11"),
        ((), "BMC", None, "BMC", ""),
        ((), "BMC", 7, "BMC", "7"),
        (AMI, "HostBIOS_0", "01.01.03", "BIOS", "1.1.3"),
        (AMI, "HostBMC_0", "23.11.21", "BMC", "23.11.21"),
        (AMI, "HGX_FW_GPU_SXM_1", "96.00.89.00.01", "HGX_FW_GPU_SXM_1", "96.00.89.00.01"),
        (DELL, "Installed-25227-7.10.30.00__iDRAC.Embedded.1-1", "7.10.30.00", "BMC", "7.10.30.00"),
        (DELL, "Installed-159-2.1.5__BIOS.Setup.1-1", "2.1.5", "BIOS", "2.1.5"),
        (DELL, "Installed-108-1.2__PSU.Slot.1", "1.2", "PSU.Slot.1", "1.2"),
    ],
)
def test_an_entry_reads_as_our_part_in_our_spelling(rules: Any, ident: str, version: Any, part: str, read: str) -> None:
    one = normalize_firmware_entry(ident, version, rules)
    assert (one.part, one.version, one.pending, one.leave_out) == (part, read, False, False)


@pytest.mark.parametrize(
    ("rule", "ident", "version", "read"),
    [
        ({"id": "CPLD", "hex_bytes": True}, "CPLD", "0x01 0x0B 0x02", "1.11.2"),
        ({"id": "CPLD", "hex_bytes": True}, "CPLD", "F0.1A", "240.26"),
        ({"id": "CPLD", "hex_bytes": True}, "CPLD", "unknown", "unknown"),
        ({"id": "BIOS", "version": r"v(?P<version>[\d.]+)"}, "BIOS", "BIOS Date: 05/13/2026 v2.7.3 (rel)", "2.7.3"),
        ({"id": "BIOS", "version": r"v(?P<version>[\d.]+)"}, "BIOS", "none", ""),
        ({"id": r"NIC-(?P<v>.+)", "version": r"NIC-(?P<version>.+)", "version_in": "id"}, "NIC-28.43", "", "28.43"),
        ({"id": "BIOS", "unpadded": True}, "BIOS", "01.00.0030-rc01", "1.0.30-rc01"),
    ],
)
def test_a_rule_takes_the_version_out_of_what_is_around_it(
    rule: dict[str, Any], ident: str, version: str, read: str
) -> None:
    assert normalize_firmware_entry(ident, version, [FirmwareSpellingRule.model_validate(rule)]).version == read


def test_a_part_is_named_by_what_its_id_holds() -> None:
    rule = FirmwareSpellingRule(id=r"GPU(?P<n>\d)_VBIOS", part="HGX_FW_GPU_SXM_{n+1}")
    assert normalize_firmware_entry("GPU0_VBIOS", "1", [rule]).part == "HGX_FW_GPU_SXM_1"
    assert normalize_firmware_entry("GPU0_VBIOS_X", "1", [rule]).part == "GPU0_VBIOS_X"


@pytest.mark.parametrize("ident", ["Previous-159-2.1.4__BIOS.Setup.1-1", "Available-108-1.3__PSU.Slot.1"])
def test_what_does_not_run_is_left_out(ident: str) -> None:
    assert normalize_firmware_entry(ident, "1", DELL).leave_out


@pytest.mark.parametrize(("rules", "ident"), [(STANDARD_FIRMWARE_RULES, "BIOS_Pending"), (SUPERMICRO, "Staging_BIOS")])
def test_what_waits_for_a_reset_is_told_from_what_runs(rules: Any, ident: str) -> None:
    one = normalize_firmware_entry(ident, "2.8", rules)
    assert (one.part, one.version, one.pending) == ("BIOS", "2.8", True)


def firmware(tiny: Any, ca_file: Path, *items: tuple[str, str | None]) -> dict[str, Any]:
    members = [
        {"@odata.id": f"/f{number}", "Id": one, "Version": version} for number, (one, version) in enumerate(items)
    ]
    tiny.tree["/redfish/v1/UpdateService/Firm"] = {"@odata.id": "/redfish/v1/UpdateService/Firm", "Members": members}
    return read_bmc_channel(tiny.node(bmc_ca=str(ca_file)), Path(), 60)


def test_an_empty_pending_entry_says_that_nothing_waits(tiny: Any, ca_file: Path) -> None:
    tree = firmware(tiny, ca_file, ("BIOS", "2.7"), ("BIOS_Pending", ""), ("BMC", "1"), ("BMC_pending", "2 "))
    assert tree["firmware"] == {"BIOS": {"value": "2.7"}, "BMC": {"value": "1"}}
    assert tree["firmware_pending"] == {"BMC": {"value": "2"}}


def test_a_part_that_is_listed_twice_is_one_where_both_agree_and_else_is_not_believed(tiny: Any, ca_file: Path) -> None:
    tree = firmware(
        tiny, ca_file, ("BMC", "1.2 "), ("BMC", "1.2"), ("BIOS", "2.7"), ("BIOS", "2.8"), ("X", ""), ("X", "3")
    )
    assert tree["firmware"]["BMC"] == {"value": "1.2"}
    assert tree["firmware"]["BIOS"] == {"failed": "the BMC lists BIOS twice, as 2.7 and as 2.8"}
    assert tree["firmware"]["X"] == {"value": "3"}


RULES = st.builds(
    FirmwareSpellingRule,
    id=st.sampled_from([".*", "A.*", r"(?P<n>\d+)", "B"]),
    part=st.sampled_from(["", "P"]),
    version=st.sampled_from(["", r"(?P<version>\d+)"]),
    version_in=st.sampled_from(["version", "id"]),
    hex_bytes=st.booleans(),
    unpadded=st.booleans(),
)


@given(st.text(max_size=20), st.one_of(st.none(), st.text(max_size=30), st.integers()), st.lists(RULES, max_size=3))
def test_any_entry_reads_as_something_and_a_second_time_the_same(ident: str, version: Any, rules: Any) -> None:
    one = normalize_firmware_entry(ident, version, rules)
    assert one.version == one.version.strip()
    assert (
        normalize_firmware_entry(ident, f"  {version or ''} ", rules).version
        == normalize_firmware_entry(ident, version or "", rules).version
    )
