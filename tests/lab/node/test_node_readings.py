"""The unchanged probe reads a virtual node; every planted fault shows in its own reading and hides no other."""

from __future__ import annotations

import copy
import os
import shutil
from typing import Any

import pytest

from assay.lab.faults.injection import inject_fault
from assay.lab.node.virtual_node import make_initial_state, render_node
from assay.lab.world import LabWorld
from assay.model.evidence import read_at_path
from assay.model.specs.node.node_spec import DiskSpec
from assay.observe.evidence_contents import iterate_leaves
from tests.lab.node.conftest import BUNDLE, NOW, SPEC, declared

needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler (package gcc) for the stub NVML")

GPU3 = "0000:61:00.0"


def value(tree: Any, path: str) -> Any:
    """Return the value at a dotted path; a PCI address's dots are written as they are in the last but one place."""
    reading = read_at_path(tree, path.split("/"))
    assert reading.kind == "value", reading
    return reading.value


@needs_compiler
def test_a_healthy_node_reads_as_its_spec_says(node: Any) -> None:
    probe = node.probe()
    assert value(probe, "host/hostname") == node.name
    assert value(probe, "host/serial") == f"SN-{node.name}"
    assert value(probe, "host/product") == "HGX H100"
    assert (value(probe, "host/cpu_sockets"), value(probe, "host/cpu_threads")) == (2, 224)
    assert value(probe, "host/memory_bytes") == 2048 * 2**30
    assert value(probe, "host/root_fs/read_only") is False
    assert value(probe, "host/root_fs/used_percent") == 31.0
    assert "iommu=pt" in value(probe, "host/cmdline")
    assert 14 * 86400 < value(probe, "host/uptime_s") < 15 * 86400
    assert (value(probe, "gpu/driver"), value(probe, "gpu/count")) == ("570.172.08", 8)
    assert len(probe["gpu"]["devices"]) == len(probe["hca"]) == len(probe["nvme"]) == 8
    assert value(probe, "hca/mlx5_3/guid") == "0xb83fd20300030000"
    assert value(probe, "hca/mlx5_3/firmware") == "28.41.1000"
    assert (value(probe, "hca/mlx5_3/state"), value(probe, "hca/mlx5_3/rate_gbps")) == ("ACTIVE", 400)
    assert (value(probe, "nic/eth1/carrier"), value(probe, "nic/eth1/speed_mbps")) == (True, 100_000)
    assert value(probe, "nvme/nvme7/size_bytes") == 3840 * 10**9
    assert set(probe["aer"]) >= {GPU3}


def test_sata_drives_are_read_and_show_what_is_planted(world: LabWorld, node: Any) -> None:
    assert "absent" in node.probe("--areas", "disk")["disk"], "the spec declares none"
    spec = SPEC.model_copy(update={"disks": [DiskSpec(name=name, size_gb=480) for name in ("sda", "sdb")]})
    node.change(lambda state: state.update(make_initial_state(declared(node.name), spec, BUNDLE, NOW)))
    assert value(node.probe("--areas", "disk"), "disk/sda/smart/passed") is True
    inject_fault(world, "disk.failing", node.name, {})
    inject_fault(world, "disk.gone", node.name, {"disk": 1})
    disks = node.probe("--areas", "disk")["disk"]
    assert list(disks) == ["sda"]
    assert (value(disks, "sda/smart/pending"), value(disks, "sda/size_bytes")) == (8, 480 * 10**9)


@needs_compiler
def test_a_healthy_gpu_has_every_reading(node: Any) -> None:
    gpu = node.probe()["gpu"]["devices"][GPU3]
    state = node.world.load(node.name)["gpus"][3]
    assert (value(gpu, "serial"), value(gpu, "uuid")) == (state["serial"], state["uuid"])
    assert value(gpu, "index") == 3
    assert value(gpu, "name") == "NVIDIA H100 80GB HBM3"
    assert value(gpu, "vbios") == "96.00.BC.00.01"
    assert [value(gpu, f"pcie/{each}") for each in ("generation", "width", "replays")] == [5, 16, 0]
    assert value(gpu, "temperature/memory_c") == value(gpu, "temperature/gpu_c") + 6
    assert (value(gpu, "power/draw_w"), value(gpu, "power/limit_w")) == (71.0, 700.0)
    assert value(gpu, "throttle") == []
    assert value(gpu, "ecc/enabled") is True
    assert value(gpu, "ecc/aggregate/uncorrected") == 0
    assert (value(gpu, "remap/pending"), value(gpu, "remap/failed")) == (False, False)
    assert (value(gpu, "nvlink/links"), value(gpu, "nvlink/up")) == (18, 18)
    assert value(gpu, "persistence") is True


FAULTS = [
    ("gpus", 3, {"temperature_c": 93, "throttle": 0x40}, f"gpu/devices/{GPU3}/temperature/gpu_c", 93),
    ("gpus", 3, {"throttle": 0x40 | 0x4}, f"gpu/devices/{GPU3}/throttle", ["sw_power_cap", "hw_thermal_slowdown"]),
    ("gpus", 3, {"pcie_width": 8}, f"gpu/devices/{GPU3}/pcie/width", 8),
    ("gpus", 3, {"pcie_generation": 4}, f"gpu/devices/{GPU3}/pcie/generation", 4),
    ("gpus", 3, {"ecc_volatile_uncorrected": 2}, f"gpu/devices/{GPU3}/ecc/volatile/uncorrected", 2),
    ("gpus", 3, {"ecc_aggregate_corrected": 7}, f"gpu/devices/{GPU3}/ecc/aggregate/corrected", 7),
    ("gpus", 3, {"remap_pending": 1}, f"gpu/devices/{GPU3}/remap/pending", True),
    ("gpus", 3, {"remap_failed": 1}, f"gpu/devices/{GPU3}/remap/failed", True),
    ("gpus", 3, {"nvlink_up": 17}, f"gpu/devices/{GPU3}/nvlink/up", 17),
    ("gpus", 3, {"aer_fatal": 1}, f"aer/{GPU3}/fatal", 1),
    ("hcas", 2, {"state": "DOWN"}, "hca/mlx5_2/state", "DOWN"),
    ("hcas", 2, {"state": "DOWN"}, "hca/mlx5_2/phys_state", "Polling"),
    ("hcas", 2, {"rate_gbps": 200}, "hca/mlx5_2/rate_gbps", 200),
    ("hcas", 2, {"link_downed": 3}, "hca/mlx5_2/counters/link_downed", 3),
    ("hcas", 2, {"symbol_error": 9}, "hca/mlx5_2/counters/symbol_error", 9),
    ("nics", 0, {"carrier": False}, "nic/eth0/carrier", False),
    ("nics", 0, {"carrier_changes": 40}, "nic/eth0/carrier_changes", 40),
]


@pytest.mark.slow
@needs_compiler
def test_every_planted_fault_shows_and_changes_no_reading_but_its_own(node: Any) -> None:
    healthy_state = node.world.load(node.name)
    for part, slot, planted, path, expected in FAULTS:
        state = copy.deepcopy(healthy_state)
        state[part][slot].update(planted)
        render_node(state, node.folder)
        probe = node.probe()
        assert value(probe, path) == expected, path
        assert value(probe, "gpu/devices/0000:1b:00.0/temperature/gpu_c") < 45
        assert value(probe, "hca/mlx5_0/counters/link_downed") == 0


@needs_compiler
def test_a_lost_gpu_failed_and_the_other_seven_are_unhurt(node: Any) -> None:
    node.change(lambda state: state["gpus"][3].update(lost=True))
    gpu = node.probe()["gpu"]
    assert gpu["devices"].pop(GPU3) == {"failed": "GPU is lost"}
    assert len(gpu["devices"]) == 7
    assert all(value(device, "pcie/width") == 16 for device in gpu["devices"].values())


@needs_compiler
def test_two_lost_gpus_are_both_known_by_their_place(node: Any) -> None:
    node.change(lambda state: [state["gpus"][slot].update(lost=True) for slot in (0, 5)])
    devices = node.probe()["gpu"]["devices"]
    lost = [pci for pci, device in devices.items() if device == {"failed": "GPU is lost"}]
    assert sorted(lost) == ["0000:1b:00.0", "0000:c3:00.0"]
    assert len(devices) == 8


@needs_compiler
def test_a_missing_gpu_is_counted_out_and_the_rest_keep_their_places(node: Any) -> None:
    node.change(lambda state: state["gpus"][3].update(present=False))
    probe = node.probe()
    assert value(probe, "gpu/count") == 7
    assert GPU3 not in probe["gpu"]["devices"]
    last = probe["gpu"]["devices"]["0000:df:00.0"]
    serial = node.world.load(node.name)["gpus"][7]["serial"]
    assert (value(last, "index"), value(last, "serial")) == (6, serial), "NVML's index moved, the place did not"
    assert GPU3 not in probe["aer"]


def test_a_full_and_read_only_root_shows(node: Any) -> None:
    node.change(lambda state: state.update(root_fs="ro", root_fs_used_percent=97))
    assert node.probe()["host"]["root_fs"] == {"read_only": {"value": True}, "used_percent": {"value": 97.0}}


@needs_compiler
def test_a_missing_drive_is_not_there(node: Any) -> None:
    node.change(lambda state: state["nvme"][5].update(present=False))
    drives = node.probe()["nvme"]
    assert sorted(drives) == [f"nvme{slot}" for slot in (0, 1, 2, 3, 4, 6, 7)]


def test_an_xid_line_comes_once_with_the_cursor(node: Any) -> None:
    before = node.probe()
    at = node.world.clock().now().isoformat()
    xid = "NVRM: Xid (PCI:0000:61:00): 79, pid=1, name=x, GPU has fallen off the bus."
    node.change(lambda state: state["kernel_log"].append({"at": at, "text": xid}))
    cursor = f"{value(before, 'kernel_log/cursor')}@{value(before, 'host/boot_id')}"
    log = node.probe("--since", cursor)["kernel_log"]
    (line,) = value(log, "lines")
    assert line["text"] == xid
    assert line["t_s"] > 13 * 86400
    later = node.probe("--since", str(value(log, "cursor")))
    assert value(later, "kernel_log/lines") == []


def test_after_a_reboot_an_old_cursor_hides_no_line(node: Any) -> None:
    before = node.probe()
    at = node.world.clock().now().isoformat()

    def reboot(state: dict[str, Any]) -> None:
        state["boot"]["id"] = "another-boot"
        state["kernel_log"] = [{"at": at, "text": "NVRM: Xid (PCI:0000:61:00): 79"}]

    node.change(reboot)
    after = node.probe("--since", f"{value(before, 'kernel_log/cursor') + 1}@{value(before, 'host/boot_id')}")
    assert value(after, "host/boot_id") == "another-boot"
    assert "Xid" in value(after, "kernel_log/lines")[-1]["text"]


HANGING = {
    "hca": "sys/class/infiniband/mlx5_2/ports/1/state",
    "host": "proc/meminfo",
    "nvme": "sys/class/nvme/nvme0/serial",
    "aer": "sys/bus/pci/devices/0000:1b:00.0/aer_dev_fatal",
}


@pytest.mark.parametrize("areas", [["hca"], ["host", "nvme", "aer"]])
def test_areas_that_hang_do_not_take_the_rest_along(node: Any, areas: list[str]) -> None:
    """A pipe that nobody writes to stands in for a file that the kernel never answers for."""
    for area in areas:
        (node.folder / "root" / HANGING[area]).unlink()
        os.mkfifo(node.folder / "root" / HANGING[area])
    for deadline in ("2.5", "10", "40"):  # a loaded machine may need longer to read the rest
        probe = node.probe("--deadline", deadline)
        assert all(unanswered(probe.pop(area)) for area in areas)
        if not (late := unanswered(probe)):
            break
    assert not late


def unanswered(tree: Any) -> list[str]:
    """Return why what was not answered was not; what hangs must say so, and nothing else may fail."""
    reasons = [reading.reason for _, reading in iterate_leaves(tree) if reading.kind == "failed"]
    assert all(reason.startswith(("no answer", "not asked")) for reason in reasons), reasons
    return reasons
