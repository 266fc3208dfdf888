"""The probe reads what proves a wipe: no refusal, no strange log and no unreadable block is taken for a proof."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.reading import parse_reading
from assay.node.probe.devices.nvme import (
    BLOCK,
    SAMPLES,
    list_block_users,
    list_sample_offsets,
    parse_methods,
    parse_sanitize_log,
    read_drive_wipe,
)
from assay.node.probe.node_access import NodeRoot, resolve_lazy

MARKER = "ab" * 32


def log(status: object, command: int = 4, progress: int = 65535) -> str:
    fields = {"sprog": progress, "sstat": status, "cdw10_info": command, "time_crypto_erase": 10}
    return json.dumps({"nvme0": fields})


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"global_erased": 1, "status": "(1) Most Recent Sanitize Command Completed Successfully."}, "completed"),
        ({"global_erased": 0, "no_cmplted_passes": 0, "status": "(2) Sanitize in Progress."}, "in progress"),
        ({"status": "(3) Most Recent Sanitize Command Failed."}, "failed"),
        ({"status": "(4) Completed Successfully with deallocation."}, "completed"),
        ({"status": "(0) NVM Subsystem has never been sanitized."}, "never"),
        (0x101, "completed"),
    ],
)
def test_a_sanitize_log_of_any_version_is_read(status: object, expected: str) -> None:
    read = parse_sanitize_log(f"a warning\n{log(status)}\n")
    assert {name: leaf["value"] for name, leaf in read.items()} == {
        "status": expected,
        "action": "sanitize-crypto",
        "percent": 99,
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "NVMe status: Invalid Log Page: The log page indicated is invalid(0x109)",
        log("(9) what"),
        log({"status": None}),
        log({"status": "(1) done"}, command="4"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_sanitize_log_is_no_value(text: str) -> None:
    assert "failed" in parse_sanitize_log(text)


@given(st.text())
def test_no_text_raises(text: str) -> None:
    parse_sanitize_log(text)
    parse_methods(text)


def test_the_methods_are_the_bits_of_the_controller() -> None:
    def read(**bits: int) -> list[str]:
        found: list[str] = parse_methods(json.dumps({"sn": "S1", **bits}))["value"]
        return found

    assert read(sanicap=3, oacs=0x1F, fna=4) == ["sanitize-crypto", "sanitize-block", "format-crypto", "format-erase"]
    assert read(sanicap=0xA0000002, oacs=2, fna=0) == ["sanitize-block", "format-erase"]
    assert read(sanicap=0, oacs=0x5, fna=4) == []
    assert "failed" in parse_methods("NVMe status: Invalid Field(0x2002)")


@given(st.integers(0, 2**50))
def test_samples_are_whole_blocks_of_the_device_with_the_first_and_the_last(size: int) -> None:
    offsets = list_sample_offsets(size)
    assert len(offsets) == min(SAMPLES, size // BLOCK)
    assert all(offset % BLOCK == 0 and offset + BLOCK <= size for offset in offsets)
    if offsets:
        assert (offsets[0], offsets[-1]) == (0, (size // BLOCK - 1) * BLOCK)


@pytest.fixture
def node(tmp_path: Path) -> NodeRoot:
    """A node with one drive behind multipathing, which is part of an array with a file system."""
    for path, text in {
        "proc/mounts": "/dev/md1 /my\\040data xfs rw 0 0\n/dev/sda1 / ext4 rw 0 0\n",
        "proc/swaps": "Filename Type Size Used Priority\n/dev/nvme0n1p2 partition 8 0 -2\n",
        "sys/class/nvme/nvme0/serial": "S1  \n",
        "sys/class/nvme/nvme0/model": "M\n",
        "sys/class/nvme/nvme0/transport": "pcie\n",
        "sys/class/nvme/nvme0/nvme0c0n1/size": "2048\n",
        "sys/class/block/nvme0n1/nvme0n1p1/size": "1024\n",
        "sys/class/block/nvme0n1p1/holders/md1": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "sys/class/block/nvme0n1/nvme0n1p2").mkdir()
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvme0n1").write_bytes(bytes(64 * BLOCK))
    return NodeRoot(str(tmp_path))


def test_who_uses_a_drive_is_found_through_partitions_and_arrays(node: NodeRoot) -> None:
    expected = [("mount", "/my data"), ("swap", "/dev/nvme0n1p2"), ("holder", "md1")]
    assert list_block_users(node, ["nvme0n1"]) == expected
    assert list_block_users(node, ["nvme1n1"]) == []


def test_marked_blocks_are_counted_and_a_device_that_cannot_be_read_is_no_value(node: NodeRoot) -> None:
    device = Path(node.path, "dev/nvme0n1")
    with device.open("r+b") as file:
        file.write(MARKER.encode() * (BLOCK // len(MARKER)))

    def read(markers: dict[str, str]) -> dict[str, object]:
        tree = resolve_lazy(read_drive_wipe(node, markers))["nvme0"]["blocks"]
        assert parse_reading(tree) is not None
        return tree

    assert read({"S1": MARKER})["value"]["nvme0n1"]["marked"] == 1  # type: ignore[index]
    assert read({"S1": "cd" * 32})["value"]["nvme0n1"]["marked"] == 0  # type: ignore[index]
    device.unlink()
    assert "nvme0n1: No such file" in str(read({"S1": MARKER})["failed"])


@pytest.mark.skipif(not shutil.which("nvme"), reason="nvme-cli is not installed")
def test_the_real_nvme_knows_our_words_and_gives_no_value_without_a_drive(tmp_path: Path) -> None:
    (tmp_path / "sys/class/nvme/nvme-of-nobody").mkdir(parents=True)
    drive = resolve_lazy(read_drive_wipe(NodeRoot(str(tmp_path)), {}))["nvme-of-nobody"]
    assert {name: drive[name] for name in ("methods", "log")} == {
        name: {"failed": "nvme gave no log; it said '/dev/nvme-of-nobody: No such file or directory'"}
        for name in ("methods", "log")
    }
