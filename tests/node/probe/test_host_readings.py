"""Processors, processes, file systems, kernel: as Linux lays them out, and whatever a file may hold."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.reading import parse_reading
from assay.node.probe import host
from assay.node.probe.devices.network_adapters import parse_bond_mode, read_bonds, read_hca_port
from assay.node.probe.host import (
    count_cpu_list,
    count_sockets,
    find_real_mounts,
    parse_cpu_list,
    parse_df,
    read_cpu,
    read_file_systems,
    read_space,
)
from assay.node.probe.named_settings import (
    describe_taints,
    normalize_spaces,
    parse_bracketed_choice,
    parse_modules,
    parse_swap_bytes,
    read_kernel,
)
from assay.node.probe.node_access import NodeRoot, convert_leaf, require_text, resolve_lazy

CPU = "sys/devices/system/cpu"


def root_with(folder: Path, files: Mapping[str, str]) -> NodeRoot:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    return NodeRoot(str(folder))


def grace(folder: Path) -> NodeRoot:
    """Two Grace processors: Arm's /proc/cpuinfo names neither a model nor a socket."""
    return root_with(
        folder,
        {
            "proc/cpuinfo": "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n\n",
            f"{CPU}/present": "0-143\n",
            f"{CPU}/online": "0-71,73-143\n",
            f"{CPU}/cpu0/topology/core_siblings_list": "0-71\n",
            f"{CPU}/cpu73/topology/core_siblings_list": "73-143\n",
            f"{CPU}/cpu0/topology/thread_siblings_list": "0\n",
            f"{CPU}/cpufreq/policy0/scaling_governor": "performance\n",
            f"{CPU}/cpufreq/policy1/scaling_governor": "schedutil\n",
        },
    )


def test_sockets_of_an_arm_node_come_from_the_topology(tmp_path: Path) -> None:
    assert count_sockets(grace(tmp_path)) == {"value": 2}


def test_processors_are_counted_with_those_that_are_offline(tmp_path: Path) -> None:
    cpu = resolve_lazy(read_cpu(grace(tmp_path)))
    assert (cpu["present"], cpu["online"], cpu["threads_per_core"]) == ({"value": 144}, {"value": 143}, {"value": 1})
    assert cpu["governors"] == {"value": ["performance", "schedutil"]}
    assert cpu["model"] == {"absent": "/proc/cpuinfo names no model name"}


def test_a_socket_that_does_not_answer_is_not_left_uncounted(tmp_path: Path) -> None:
    root = root_with(tmp_path, {f"{CPU}/online": "0-7\n"})
    assert list(count_sockets(root)) == ["absent"]


def test_lists_of_processors() -> None:
    assert parse_cpu_list("0-2,8") == [0, 1, 2, 8]
    assert count_cpu_list("0-111,113-223") == 223
    for wrong in ("", "3-1", "0-99999999999", "-1", "a"):
        with pytest.raises(ValueError, match=r".*"):
            parse_cpu_list(wrong)


def test_zombies_are_counted_and_any_name_is_read(tmp_path: Path) -> None:
    root = root_with(
        tmp_path,
        {"proc/7/stat": "7 (a) Z (b) S 1 7", "proc/8/stat": "8 (cc1plus) Z 1 8", "proc/self/stat": "9 (x) Z 1 9"},
    )
    found = host.read_processes(root)
    assert (found["count"], found["zombies"], found["stuck"]) == ({"value": 2}, {"value": 1}, {"value": []})


def test_stuck_is_who_waits_and_did_not_run_between_two_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"proc/{pid}/stat": f"{pid} (dd) D 1 {pid}" for pid in (7, 8)}
    files |= {f"proc/{pid}/status": "State: D\nvoluntary_ctxt_switches:\t5\n" for pid in (7, 8)}
    root = root_with(tmp_path, files)
    runs = tmp_path / "proc/8/status"
    monkeypatch.setattr(host.time, "sleep", lambda _: runs.write_text("State: D\nvoluntary_ctxt_switches:\t6\n"))
    assert host.read_processes(root)["stuck"] == {"value": ["dd (7)"]}


def test_this_machines_own_processes_are_seen() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        seen = host.read_processes(NodeRoot())
        child.communicate(b"\n")
    assert seen["count"]["value"] >= 2


MOUNTS = """rootfs / rootfs rw 0 0
/dev/md0 / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
/dev/md1 /var/lib/with\\040blank xfs ro,noatime 0 0
/dev/md1 /var/lib/kubelet/pods/7/volume xfs rw 0 0
store:/home /home nfs4 rw,hard 0 0
overlay /run/containerd/rootfs overlay rw 0 0
"""


def test_real_mounts_are_named_once_and_the_rest_is_left_out() -> None:
    assert [(mount.name, mount.type) for mount in find_real_mounts(MOUNTS)] == [
        ("-", "ext4"),
        ("var-lib-with blank", "xfs"),
        ("home", "nfs4"),
    ]


def test_a_mount_says_whether_it_can_be_written(tmp_path: Path) -> None:
    mounts = resolve_lazy(read_file_systems(root_with(tmp_path, {"proc/mounts": MOUNTS})))
    assert mounts["-"]["read_only"] == {"value": False}
    assert mounts["var-lib-with blank"]["read_only"] == {"value": True}
    assert mounts["var-lib-with blank"]["mount_point"] == {"value": "/var/lib/with blank"}


def test_df_counts_of_what_anyone_may_use() -> None:
    heading = "1B-blocks Used Avail Inodes IUsed\n"
    assert parse_df(f"{heading}1000 300 600 2000 100\n") == {
        "size_bytes": {"value": 1000},
        "used_percent": {"value": 33.3},
        "inodes_used_percent": {"value": 5.0},
    }
    assert "absent" in parse_df(f"{heading}1000 300 600 0 0\n")["inodes_used_percent"]
    assert "absent" in parse_df(f"{heading}1000 300 600 - -\n")["inodes_used_percent"]
    assert "failed" in parse_df("df: /data: Stale file handle\n")


def test_this_machines_own_root_is_asked() -> None:
    assert 0 <= read_space(NodeRoot(), "/")["used_percent"]["value"] <= 100


@given(st.text())
def test_no_output_of_df_and_no_list_of_mounts_raises(text: str) -> None:
    assert all(mount.point for mount in find_real_mounts(text))
    assert parse_reading(parse_df(text)) or "size_bytes" in parse_df(text)


def test_a_kernel_says_what_it_went_through() -> None:
    assert describe_taints("12288") == []
    assert describe_taints(str(12288 + (1 << 4) + (1 << 14))) == ["a machine check", "a soft lockup"]


def test_kernel_settings_are_read_as_sysctl_writes_them(tmp_path: Path) -> None:
    root = root_with(
        tmp_path,
        {
            "proc/sys/vm/swappiness": "10\n",
            "proc/sys/net/core/rmem_max": "212992\n",
            "proc/modules": "nvidia 1 0 - Live 0x0\nmlx5_core 1 0 - Live 0x0\n",
            "proc/swaps": "Filename Type Size Used Priority\n/swap.img file 2048 0 -2\n",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "8\n",
            "sys/kernel/iommu_groups/0/type": "identity\n",
        },
    )
    kernel = resolve_lazy(read_kernel(root))
    assert kernel["sysctl"]["vm.swappiness"] == {"value": "10"}
    assert kernel["modules"] == {"value": ["mlx5_core", "nvidia"]}
    assert kernel["swap_bytes"] == {"value": 2 * 2**20}
    assert kernel["transparent_hugepages"] == {"value": "madvise"}
    assert kernel["hugepages"]["1048576kB"]["total"] == {"value": 8}
    assert kernel["iommu_groups"] == {"value": 1}
    assert "absent" in kernel["sysctl"]["kernel.panic"]


def test_a_table_of_keys_is_read_to_its_first_empty_entry(tmp_path: Path) -> None:
    keys = {f"port/pkeys/{index}": f"{key}\n" for index, key in enumerate(("0x7fff", "0x8001", "0x0000", "0x8002"))}
    port = resolve_lazy(read_hca_port(root_with(tmp_path, {**keys, "port/lid": "0x1f\n"}), "/port"))
    assert port["pkeys"] == {"value": ["0x7fff", "0x8001"]}
    assert port["lid"] == {"value": 31}


def test_a_bond_tells_its_members_and_which_of_them_are_up(tmp_path: Path) -> None:
    net = "sys/class/net"
    files = {
        f"{net}/bonding_masters": "bond0\n",
        f"{net}/bond0/bonding/mode": "802.3ad 4\n",
        f"{net}/bond0/bonding/slaves": "eth0 eth1\n",
        f"{net}/eth0/bonding_slave/mii_status": "up\n",
        f"{net}/eth1/bonding_slave/mii_status": "down\n",
    }
    assert resolve_lazy(read_bonds(root_with(tmp_path, files))) == {
        "bond0": {"mode": {"value": "802.3ad"}, "members": {"value": ["eth0", "eth1"]}, "up": {"value": ["eth0"]}}
    }
    assert resolve_lazy(read_bonds(NodeRoot(str(tmp_path / "none")))) == {}


CONVERTERS = [
    parse_bond_mode,
    parse_cpu_list,
    count_cpu_list,
    parse_modules,
    normalize_spaces,
    parse_bracketed_choice,
    parse_swap_bytes,
    describe_taints,
    require_text,
]


@pytest.mark.parametrize("convert", CONVERTERS)
@given(text=st.text())
def test_no_content_raises(convert: Any, text: str) -> None:
    assert list(convert_leaf("/some/file", text, convert)) in (["value"], ["failed"])


@given(st.binary())
def test_no_process_whatever_raises(stat: bytes) -> None:
    found = host.parse_process_stat(stat)
    assert found is None or isinstance(found.pid, int)
