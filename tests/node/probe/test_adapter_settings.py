"""The probe reads the firmware settings of adapters, and takes no refusal, and no missing column, for a value."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.model.reading import parse_reading
from assay.node.probe.devices.network_adapters import parse_settings, read_adapter_settings
from assay.node.probe.node_access import NodeRoot

HEAD = "\nDevice #1:\n----------\n\nDevice type:        ConnectX7           \nName:               MCX75310AAS-NEA_Ax\n"
TABLE = f"""{HEAD}Description:        NVIDIA ConnectX-7 HHHL Adapter card; 400GbE / NDR IB; Single-port OSFP
Device:             0000:18:00.0

Configurations:                                          Default             Current             Next Boot
RO      SECURE_ENTITY                               Disabled(0)          Disabled(0)          Disabled(0)
        NUM_OF_VFS                                  16                   8                    8
*       PCI_WR_ORDERING                             per_mkey(0)          per_mkey(0)          force_relax(1)
        LINK_TYPE_P1                                IB(1)                N/A                  IB(1)
        A_TLV_THAT_SAYS                             no value in this row at all
The '*' shows parameters with next value different from default/current value.
"""
NEXT_ONLY = f"""{HEAD}
Configurations:                                      Next Boot
         LINK_TYPE_P1                                ETH(2)
Device Firmware does not support reading default and current configurations
"""
TOOL = """#!/bin/sh
case "$2" in
0000:18:00.0) cat {table} ;;
0000:40:00.0) [ $# -gt 4 ] && {{ echo "-E- The Device doesn't support $5 parameter"; exit 3; }}; cat {table} ;;
*) echo "-E- Failed to open the device"; exit 3 ;;
esac
"""


def both(current: str, next_boot: str) -> dict[str, dict[str, str]]:
    return {"current": {"value": current}, "next_boot": {"value": next_boot}}


def test_the_value_in_force_and_the_next_one_are_told_apart() -> None:
    seen = parse_settings(TABLE, ["NUM_OF_VFS", "PCI_WR_ORDERING", "SECURE_ENTITY"])
    assert seen == {
        "NUM_OF_VFS": both("8", "8"),
        "PCI_WR_ORDERING": both("per_mkey(0)", "force_relax(1)"),
        "SECURE_ENTITY": both("Disabled(0)", "Disabled(0)"),
    }


@pytest.mark.parametrize("table", [TABLE, NEXT_ONLY])
def test_a_value_that_the_firmware_does_not_give_is_unsupported(table: str) -> None:
    (seen,) = parse_settings(table, ["LINK_TYPE_P1"]).values()
    assert (list(seen["current"]), list(seen["next_boot"])) == (["unsupported"], ["value"])


def test_a_setting_that_the_adapter_does_not_have_is_unsupported() -> None:
    assert parse_settings(TABLE, ["ATS_ENABLED"]) == {"ATS_ENABLED": {"unsupported": "the adapter has no such setting"}}
    assert list(parse_settings(TABLE, ["A_TLV_THAT_SAYS"])["A_TLV_THAT_SAYS"]) == ["unsupported"]
    incomplete = f"{TABLE}-E- Failed to query some of the TLVs:\n"
    assert list(parse_settings(incomplete, ["ATS_ENABLED"])["ATS_ENABLED"]) == ["failed"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("-E- Failed to open the device\n", "mstconfig: Failed to open the device"),
        (f"{HEAD}\n-E- Device doesn't support any configuration changes.\n", "doesn't support any configuration"),
        ("", "cannot make sense of ''"),
        ("Segmentation fault\n", "cannot make sense of 'Segmentation fault'"),
        ("Configurations:  Default  Current  Next Boot\n", "cannot make sense"),
    ],
)
def test_a_refusal_and_a_strange_text_are_failed_readings(text: str, reason: str) -> None:
    assert reason in parse_settings(text, ["LINK_TYPE_P1"])["failed"]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.text() | st.lists(st.sampled_from([*TABLE.splitlines(), "-E- no", "*", "RO"])).map("\n".join))
def test_any_text_gives_readings(text: str) -> None:
    seen = parse_settings(text, ["NUM_OF_VFS"])
    leaf = parse_reading(seen) or parse_reading(seen["NUM_OF_VFS"])
    assert leaf or set(seen["NUM_OF_VFS"]) == {"current", "next_boot"}


def test_adapters_are_asked_by_address_or_by_interface(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "table").write_text(TABLE)
    tool = tmp_path / "bin/mstconfig"
    tool.parent.mkdir()
    tool.write_text(TOOL.format(table=tmp_path / "table"))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    uevent = tmp_path / "root/sys/class/net/eth0/device/uevent"
    uevent.parent.mkdir(parents=True)
    uevent.write_text("DRIVER=mlx5_core\nPCI_SLOT_NAME=0000:18:00.0\n")
    places = ["0000:40:00.0=NUM_OF_VFS+ATS_ENABLED", "0000:99:00.0=NUM_OF_VFS", "eth0=NUM_OF_VFS", "eth7=NUM_OF_VFS"]
    seen = read_adapter_settings(NodeRoot(str(tmp_path / "root")), ",".join(places))
    assert seen["eth0"] == {"NUM_OF_VFS": both("8", "8")}
    assert seen["0000:40:00.0"]["NUM_OF_VFS"] == both("8", "8"), "one unknown name does not hide the others"
    assert list(seen["0000:40:00.0"]["ATS_ENABLED"]) == ["unsupported"]
    assert seen["0000:99:00.0"] == {"failed": "mstconfig: Failed to open the device"}
    assert list(seen["eth7"]) == ["absent"]


def test_a_node_without_mstconfig_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    seen = read_adapter_settings(NodeRoot(), "0000:18:00.0=LINK_TYPE_P1")
    assert seen == {"0000:18:00.0": {"absent": "mstconfig is not installed"}}
