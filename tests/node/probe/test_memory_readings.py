"""Memory: modules as the firmware lists them, errors as EDAC counts them, machine checks as the kernel counts them."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.lab.node.host_files import smbios_table
from assay.model.reading import parse_reading
from assay.node.probe.devices.memory_modules import (
    DMI_TABLE,
    END_OF_TABLE,
    INTERRUPTS,
    _device,
    name_by_slot,
    parse_dmi_table,
    read_dimms,
    read_edac,
    read_machine_checks,
    sum_interrupts,
)
from assay.node.probe.node_access import NodeRoot, resolve_lazy

DIMM = {
    "slot": "P1-DIMMA1",
    "size_gib": 64,
    "speed_mts": 5600,
    "configured_mts": 4400,
    "part": "M321R8GA0BB0-CQKZJ",
    "serial": "00374B2A",
    "present": True,
}
ON_224_CPUS = [
    b" 25:" + b"          7" * 224 + b"  PCI-MSIX mlx5\n",
    b"MCE:" + b"          1" * 224 + b"  Machine check\n",
]


def with_table(folder: Path, content: bytes) -> NodeRoot:
    path = folder / DMI_TABLE.lstrip("/")
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return NodeRoot(str(folder))


def test_a_module_has_its_size_speeds_part_and_serial(tmp_path: Path) -> None:
    memory = read_dimms(with_table(tmp_path, smbios_table([DIMM, {**DIMM, "slot": "P1-DIMMA2", "present": False}])))
    assert memory["dimms"]["P1-DIMMA1"] == {
        "size_bytes": {"value": 64 * 2**30},
        "speed_mts": {"value": 5600},
        "configured_mts": {"value": 4400},
        "vendor": {"value": "Samsung"},
        "serial": {"value": "00374B2A"},
        "part": {"value": "M321R8GA0BB0-CQKZJ"},
    }
    assert memory["empty_slots"] == {"value": ["P1-DIMMA2"]}


@pytest.mark.parametrize("gib", [1, 31, 32, 64, 256, 480])
def test_small_and_large_modules_have_their_size(gib: int, tmp_path: Path) -> None:
    memory = read_dimms(with_table(tmp_path, smbios_table([{**DIMM, "size_gib": gib}])))
    assert memory["dimms"]["P1-DIMMA1"]["size_bytes"] == {"value": gib * 2**30}


def test_modules_in_slots_of_one_name_are_all_there(tmp_path: Path) -> None:
    assert len(read_dimms(with_table(tmp_path, smbios_table([{**DIMM, "slot": "DIMM 0"}] * 3)))["dimms"]) == 3


def test_a_size_that_the_firmware_does_not_know_is_no_size(tmp_path: Path) -> None:
    content = bytearray(smbios_table([DIMM]))
    struct.pack_into("<H", content, 0x0C, 0xFFFF)
    assert "absent" in read_dimms(with_table(tmp_path, bytes(content)))["dimms"]["P1-DIMMA1"]["size_bytes"]


def test_a_table_that_breaks_off_failed_and_one_without_modules_is_absent(tmp_path: Path) -> None:
    assert "failed" in read_dimms(with_table(tmp_path / "a", smbios_table([DIMM])[:60]))
    assert "absent" in read_dimms(with_table(tmp_path / "b", bytes([END_OF_TABLE, 4, 0, 0, 0, 0])))
    assert "absent" in read_dimms(NodeRoot(str(tmp_path / "c")))


@given(st.binary(max_size=300))
def test_no_table_whatever_raises_but_the_error_that_says_so(content: bytes) -> None:
    with suppress(ValueError):  # that of a structure that does not end
        assert all(isinstance(one.text(0x10), str) for one in parse_dmi_table(content))


@given(st.integers(0, 140), st.binary(min_size=1, max_size=8))
def test_no_spoilt_module_raises(at: int, spoilt: bytes) -> None:
    content = bytearray(smbios_table([DIMM]))
    content[at : at + len(spoilt)] = spoilt
    with suppress(ValueError):
        for device in name_by_slot(one for one in parse_dmi_table(bytes(content)) if one.type == 17).values():
            assert all(parse_reading(leaf) for leaf in _device(device).values())


def test_errors_are_told_by_module(tmp_path: Path) -> None:
    files = {
        "mc0/ce_noinfo_count": "1\n",
        "mc0/ue_noinfo_count": "0\n",
        "mc0/dimm0/dimm_label": "P1-DIMMA1\n",
        "mc0/dimm0/dimm_ce_count": "17\n",
        "mc0/dimm0/dimm_ue_count": "2\n",
        "mc0/rank4/dimm_label": "P1-DIMMB1\n",
    }
    for name, content in files.items():
        path = tmp_path / "sys/devices/system/edac/mc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    controller = resolve_lazy(read_edac(NodeRoot(str(tmp_path))))["mc0"]
    assert controller["unplaced"] == {"corrected": {"value": 1}, "uncorrected": {"value": 0}}
    assert controller["dimms"]["dimm0"] == {
        "label": {"value": "P1-DIMMA1"},
        "corrected": {"value": 17},
        "uncorrected": {"value": 2},
    }
    assert "absent" in controller["dimms"]["rank4"]["corrected"]


def test_a_kernel_without_a_driver_for_the_controllers_has_no_count_of_zero(tmp_path: Path) -> None:
    (tmp_path / "sys/devices/system/edac/mc/power").mkdir(parents=True)
    assert list(resolve_lazy(read_edac(NodeRoot(str(tmp_path))))) == ["absent"]


def test_machine_checks_are_summed_over_all_processors() -> None:
    assert sum_interrupts(ON_224_CPUS) == {b"MCE:": 224}


def test_where_the_kernel_counts_no_machine_checks_there_is_no_zero(tmp_path: Path) -> None:
    path = tmp_path / INTERRUPTS.lstrip("/")
    path.parent.mkdir()
    path.write_text("  1: 0 0 GICv3 27 arch_timer\nErr: 0\n")
    assert read_machine_checks(NodeRoot(str(tmp_path))) == {}
    path.write_text("LOC: 5 5\nMCP: 1 1\n")
    assert "absent" in read_machine_checks(NodeRoot(str(tmp_path)))["exceptions"]


@given(st.lists(st.binary(max_size=60)))
def test_no_line_whatever_raises(lines: list[bytes]) -> None:
    counts: dict[bytes, Any] = sum_interrupts(lines)
    assert all(isinstance(count, int) for count in counts.values())
