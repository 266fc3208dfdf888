"""sysfs and procfs are read as Linux writes them; what is not there is absent and what makes no sense failed."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.node.probe.devices.network_adapters import (
    parse_carrier,
    parse_guid,
    parse_hca_port_state,
    parse_number,
    parse_port_guid,
    parse_rate_gbps,
    read_hcas,
    read_nics,
)
from assay.node.probe.devices.nvme import read_drives
from assay.node.probe.devices.pci import parse_aer_total, read_aer
from assay.node.probe.host import parse_load, parse_memory_bytes, read_host, root_is_read_only
from assay.node.probe.node_access import NodeRoot, convert_leaf, leaf_for_error, resolve_lazy

SAMPLES = Path(os.environ.get("ASSAY_SAMPLES", "no samples"))
H100_SYSFS = SAMPLES / "infiniband/sysfs-class-infiniband-h100.tar.xz"
CORRECTABLE = "RxErr 3\nBadTLP 1\nTOTAL_ERR_COR 4\n"


def root_with(folder: Path, files: Mapping[str, str]) -> NodeRoot:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    return NodeRoot(str(folder))


def test_errors_are_told_apart() -> None:
    assert "absent" in leaf_for_error("/x", OSError(2, "No such file or directory"))
    assert "absent" in leaf_for_error("/x", OSError(19, "No such device"))
    assert "unsupported" in leaf_for_error("/x", OSError(22, "Invalid argument"))
    assert "unsupported" in leaf_for_error("/x", OSError(95, "Operation not supported"))
    assert leaf_for_error("/x", OSError(5, "Input/output error")) == {"failed": "/x: Input/output error"}
    assert "failed" in leaf_for_error("/x", OSError(13, "Permission denied"))


@pytest.mark.parametrize("read", [read_hcas, read_nics, read_drives, read_aer])
def test_on_an_empty_root_a_whole_branch_is_absent_and_nothing_is_zero(read: Any, tmp_path: Path) -> None:
    assert list(resolve_lazy(read(NodeRoot(str(tmp_path))))) == ["absent"]


def test_a_host_without_any_file_has_a_stated_reason_for_each(tmp_path: Path) -> None:
    host = resolve_lazy(read_host(NodeRoot(str(tmp_path))))
    branches = ("root_fs", "board", "bios", "cpu")
    single = {name: leaf for name, leaf in host.items() if name not in branches}
    single |= {name: leaf for branch in branches[1:] for name, leaf in host[branch].items()}
    assert all(list(leaf) == ["absent"] for leaf in single.values()), single
    assert host["root_fs"]["read_only"] == {"absent": "/proc/mounts: No such file or directory"}
    assert 0 <= host["root_fs"]["used_percent"]["value"] <= 100


def test_an_empty_hostname_is_not_a_name(tmp_path: Path) -> None:
    root = root_with(tmp_path, {"proc/sys/kernel/hostname": "\n"})
    assert "failed" in resolve_lazy(read_host(root))["hostname"]


def test_memory_is_in_bytes() -> None:
    assert parse_memory_bytes("MemTotal:       2048 kB\nMemFree: 1 kB\n") == 2 * 2**20


@pytest.mark.parametrize(
    ("mounts", "read_only"),
    [
        ("/dev/md0 / ext4 rw,relatime 0 0\n", False),
        ("/dev/md0 / ext4 ro,relatime 0 0\n", True),
        ("rootfs / rootfs ro 0 0\n/dev/md0 / ext4 rw,errors=remount-ro 0 0\n", False),
    ],
)
def test_the_last_mount_on_the_root_says_whether_it_is_read_only(mounts: str, read_only: bool) -> None:
    assert root_is_read_only(mounts) is read_only


def test_a_real_h100_nodes_adapters_are_read(tmp_path: Path) -> None:
    if not H100_SYSFS.exists():
        pytest.skip("ASSAY_SAMPLES names no folder of real recordings")
    with tarfile.open(H100_SYSFS) as archive:
        archive.extractall(tmp_path, filter="data")
    (tmp_path / "sys/class").mkdir(parents=True)
    (recorded,) = tmp_path.glob("sys-class-infiniband-*")
    recorded.rename(tmp_path / "sys/class/infiniband")
    hcas = resolve_lazy(read_hcas(NodeRoot(str(tmp_path))))
    assert len(hcas) == 9
    assert hcas["mlx5_0"]["rate_gbps"] == {"value": 400}
    assert hcas["mlx5_0"]["firmware"] == {"value": "28.41.1000"}
    assert hcas["mlx5_0"]["state"] == {"value": "ACTIVE"}
    assert hcas["mlx5_1"]["counters"]["link_downed"] == {"value": 255}
    assert hcas["mlx5_bond_0"]["link_layer"] == {"value": "Ethernet"}
    assert "absent" in hcas["mlx5_0"]["guid"], "the recording has no node_guid, and that is no zero"


def test_an_adapters_spellings() -> None:
    assert parse_guid("b83f:d203:00a1:0000") == "0xb83fd20300a10000"
    assert parse_hca_port_state("1: DOWN") == "DOWN"
    assert (parse_rate_gbps("400 Gb/sec (4X NDR)"), parse_rate_gbps("2.5 Gb/sec (1X SDR)")) == (400, 2.5)


def test_only_hardware_ethernet_counts_as_a_network_interface(tmp_path: Path) -> None:
    def interface(name: str, type_: str, *, device: bool) -> dict[str, str]:
        folder = f"sys/class/net/{name}"
        files = {
            "type": type_,
            "carrier": "1",
            "speed": "100000",
            "address": "b8:3f:d2:00:00:01",
            "carrier_changes": "2",
        }
        found = {f"{folder}/{file}": f"{content}\n" for file, content in files.items()}
        return found | ({f"{folder}/device/vendor": "0x15b3\n"} if device else {})

    files = (
        interface("eth0", "1", device=True) | interface("ib0", "32", device=True) | interface("lo", "772", device=False)
    )
    nics = resolve_lazy(read_nics(root_with(tmp_path, files)))
    assert list(nics) == ["eth0"]
    assert (nics["eth0"]["carrier"], nics["eth0"]["speed_mbps"]) == ({"value": True}, {"value": 100_000})
    assert (nics["eth0"]["mac"], nics["eth0"]["carrier_changes"]) == ({"value": "b8:3f:d2:00:00:01"}, {"value": 2})
    assert "absent" in nics["eth0"]["mtu_bytes"]


def test_a_link_without_a_known_speed_has_none(tmp_path: Path) -> None:
    folder = "sys/class/net/eth0"
    root = root_with(tmp_path, {f"{folder}/type": "1", f"{folder}/device/vendor": "x", f"{folder}/speed": "-1\n"})
    assert "absent" in resolve_lazy(read_nics(root))["eth0"]["speed_mbps"]


def test_a_drives_namespaces_add_up_and_a_drive_without_one_has_no_size(tmp_path: Path) -> None:
    root = root_with(
        tmp_path,
        {
            "sys/class/nvme/nvme0/model": "SAMSUNG MZ      \n",
            "sys/class/nvme/nvme0/nvme0n1/size": "1000\n",
            "sys/class/nvme/nvme0/nvme0c0n2/size": "24\n",
            "sys/class/nvme/nvme1/model": "SAMSUNG MZ\n",
        },
    )
    drives = resolve_lazy(read_drives(root))
    assert drives["nvme0"]["model"] == {"value": "SAMSUNG MZ"}
    assert drives["nvme0"]["size_bytes"] == {"value": 1024 * 512}
    assert "absent" in drives["nvme1"]["size_bytes"]


def test_pcie_errors_are_the_totals_of_devices_that_report_them(tmp_path: Path) -> None:
    device = "sys/bus/pci/devices/0000:1B:00.0"
    root = root_with(
        tmp_path,
        {
            f"{device}/aer_dev_correctable": CORRECTABLE,
            f"{device}/aer_dev_nonfatal": "TOTAL_ERR_NONFATAL 0\n",
            f"{device}/aer_dev_fatal": "garbage\n",
            "sys/bus/pci/devices/0000:00:00.0/vendor": "0x8086\n",
        },
    )
    (name, counts), *others = resolve_lazy(read_aer(root)).items()
    assert (name, others) == ("0000:1b:00.0", [])
    assert (counts["correctable"], counts["nonfatal"]) == ({"value": 4}, {"value": 0})
    assert counts["fatal"] == {
        "failed": "/sys/bus/pci/devices/0000:1B:00.0/aer_dev_fatal: cannot make sense of 'garbage'"
    }


HOST = [parse_memory_bytes, root_is_read_only, parse_load]
CONVERTERS = [
    *HOST,
    parse_guid,
    parse_port_guid,
    parse_number,
    parse_hca_port_state,
    parse_rate_gbps,
    parse_carrier,
    parse_aer_total,
    int,
    float,
]


@pytest.mark.parametrize("convert", CONVERTERS)
@given(text=st.text())
def test_no_content_whatever_raises(convert: Any, text: str) -> None:
    assert list(convert_leaf("/some/file", text, convert)) in (["value"], ["failed"])
