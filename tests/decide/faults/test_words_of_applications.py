"""Applications write words that the kernel writes too. A fault needs what only the kernel says: a number, say."""

from __future__ import annotations

import pytest

APPLICATIONS = [
    "Out of memory: retrying with smaller batch",
    "Out of memory",
    "Memory cgroup out of memory, please ask for more",
    "Oops: something went wrong",
    "Unable to handle kernel restart, the notebook is gone",
    "BUG: unable to handle request of user 7",
    "BUG: kernel NULL pointer in the list of known phrases",
    "Kernel panic - not syncing is what you would see",
    "INFO: task fetch blocked for more than 120 seconds",
    "Memory failure: 0xyz is no address",
    "BTRFS error codes are listed below",
    "I/O error, dev team was told",
    "Buffer I/O error on development server",
    "nfs: server filer1 not responding to pings of ours",
    "critical temperature reached in oven 4, shutting down",
    "NETDEV WATCHDOG: what a transmit queue timed out means",
    "thermal thermal_zone0: critical temperature is 105 C",
    "NVRM: nvAssertFailedNoLog: Assertion failed: (status == NV_OK) || (status == NV_ERR_GPU_IS_LOST) @ rs_client.c:84",
    "nvme0n1: Write Zeroes(0x8) @ LBA 0, 8 blocks, Invalid Command Opcode (sct 0x0 / sc 0x1) DNR",
    "ice cafe link is down",
    "XFS (the file system) is Corruption free",
    "list_del corruption is what the checker looks for",
    "refcount_t: the type of our counters",
    "UBSAN: enabled in this build",
    "BUG: KASAN: see the handbook",
    "BUG: stack guard page is off",
    "kernel tried to execute the notebook",
]
KERNELS = {
    "Out of memory: Kill process 77 (java) score 901 or sacrifice child": "host.oom",
    "Out of memory (oom_kill_allocating_task): Kill process 77 (java) score 0 or sacrifice child": "host.oom",
    "Memory cgroup out of memory: Killed process 77 (java) total-vm:812044kB, anon-rss:518420kB": "host.oom",
    "Oops: 0002 [#1] SMP NOPTI": "host.kernel.oops",
    "Oops: general protection fault, probably for non-canonical address 0xdead000000000108: 0000 [#1] SMP": (
        "host.kernel.oops"
    ),
    "Unable to handle kernel NULL pointer dereference at virtual address 0000000000000008": "host.kernel.oops",
    "BUG: unable to handle kernel paging request at ffffc90000000000": "host.kernel.oops",
    "BUG: kernel NULL pointer dereference, address: 0000000000000010": "host.kernel.oops",
    "INFO: task kworker/u96:2:913 blocked for more than 120 seconds.": "host.task.hung",
    "Memory failure: 0x17a2f3c: recovery action for dirty LRU page: Recovered": "host.memory.uncorrected",
    "BTRFS critical (device nvme0n1p2): corrupt leaf: root=5 block=3": "host.filesystem.error",
    "I/O error, dev dm-0, sector 2048 op 0x0:(READ) flags 0x80700": "disk.errors",
    "print_req_error: critical medium error, dev sdb, sector 81": "disk.data.lost",
    "nvme0n1: I/O Cmd(0x2) @ LBA 1234, 8 blocks, I/O Error (sct 0x2 / sc 0x81) DNR": "disk.data.lost",
    "nvme0n1: Read(0x2) @ LBA 1234, 8 blocks, Internal Error (sct 0x0 / sc 0x6)": "disk.errors",
    "thermal thermal_zone0: acpitz: critical temperature reached, shutting down": "host.thermal.shutdown",
    "mlx5_core 0000:c1:00.0 eth0: NETDEV WATCHDOG: CPU: 3: transmit queue 7 timed out 5120 ms": "nic.transmit.stuck",
    "NETDEV WATCHDOG: ens1f0np0 (mlx5_core): transmit queue 7 timed out 5120 ms": "nic.transmit.stuck",
    "NVRM: GPU is lost, skipping device timer callbacks": "gpu.lost",
    "NVRM: _kgspRpcRecvPoll: LibOS heartbeat timed out": "gpu.gsp.heartbeat",
    "NVRM: GPU0 _kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTimeMs 7 heartbeat 0": "gpu.gsp.heartbeat",
    "Buffer I/O error on device sda1, logical block 5": "disk.errors",
    "nfs: server filer1 not responding, timed out": "nfs.silent",
    "mlx5_core 0000:5c:00.0: print_health_info:520:(pid 0): synd 0x10: High temperature": "hca.hot",
}


@pytest.mark.parametrize("text", APPLICATIONS)
def test_what_an_application_says_is_no_fault(text, tell):
    assert tell(f"2026-11-21 08:29:24,123 WARNING {text}", "2026-11-21 08:29:25,123 INFO next")["faults"] == []


@pytest.mark.parametrize(("text", "name"), KERNELS.items())
def test_what_the_kernel_says_is_one(text, name, tell):
    document = tell(f"Nov 21 08:29:24 n1 kernel: {text}")
    assert [fault["fault"] for fault in document["faults"]] == [name]


CRASHES = {
    "general protection fault, probably for non-canonical address 0xdead0100: 0000 [#1] SMP": "host.kernel.oops",
    "general protection fault: 0000 [#1] SMP PTI": "host.kernel.oops",
    "kernel BUG at mm/slub.c:321!": "host.kernel.oops",
    "invalid opcode: 0000 [#1] SMP NOPTI": "host.kernel.oops",
    "divide error: 0000 [#1] SMP": "host.kernel.oops",
    "mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 5: be00000000800400": "host.mce.fatal",
    "EXT4-fs (nvme0n1p2): I/O error while writing superblock": "host.filesystem.error",
    "XFS (dm-0): log I/O error -5": "host.filesystem.error",
    "Internal error: Oops: 0000000096000004 [#1] SMP": "host.kernel.oops",
    "Internal error: synchronous external abort: 0000000096000410 [#1] SMP": "host.kernel.oops",
    "BUG: Bad page state in process python  pfn:1d3f8f": "host.kernel.oops",
    "[Hardware Error]: Uncorrected, software restartable error.": "host.mce.fatal",
    "[Hardware Error]: System Fatal error.": "host.mce.fatal",
    "mce: Uncorrected hardware memory error in user-access at 1d3f8f000": "host.memory.uncorrected",
    "nvidia 0000:9d:00.0: Unable to change power state from D3cold to D0, device inaccessible": "gpu.bus.lost",
    "kernel tried to execute NX-protected page - exploit attempt? (uid: 0)": "host.kernel.oops",
    "BUG: stack guard page was hit at ffffc90000000000 (stack is ffffc90000000000..)": "host.kernel.oops",
    "BUG: TASK stack guard page was hit at 00000000ab12 (stack is 00000000ab00..00000000abff)": "host.kernel.oops",
    "stack guard page: 0000 [#1] PREEMPT SMP NOPTI": "host.kernel.oops",
    "list_add corruption. prev->next should be next (ffff8881), but was ffff8882. (prev=ffff8883).": (
        "host.kernel.corruption"
    ),
    "list_add corruption. prev is NULL.": "host.kernel.corruption",
    "list_add double add: new=ffff8881, prev=ffff8882, next=ffff8881.": "host.kernel.corruption",
    "list_del corruption, ffff888100000000->next is LIST_POISON1 (dead000000000100)": "host.kernel.corruption",
    "list_del corruption. next->prev should be ffff8881, but was ffff8882. (next=ffff8883)": "host.kernel.corruption",
    "refcount_t: underflow; use-after-free.": "host.kernel.corruption",
    "refcount_t: addition on 0; use-after-free.": "host.kernel.corruption",
    "BUG: KASAN: slab-out-of-bounds in mlx5e_poll_rx_cq+0x12/0x30 [mlx5_core]": "host.kernel.corruption",
    "BUG: KASAN: double-free or invalid-free in kfree+0x12/0x30": "host.kernel.corruption",
    "BUG: KFENCE: use-after-free read in bpf_sk_storage_get_tracing+0x2e/0x1b0": "host.kernel.corruption",
}
DEFECTS = [
    "refcount_t: saturated; leaking memory.",
    "refcount_t: decrement hit 0; leaking memory.",
    "UBSAN: shift-out-of-bounds in drivers/gpu/drm/foo.c:123:45",
    "UBSAN: Undefined behaviour in net/core/dev.c:12:5",
]


@pytest.mark.parametrize("message", DEFECTS)
def test_a_defect_of_which_the_kernel_limits_the_effect_asks_for_nothing(message, tell):
    (fault,) = tell(f"[Tue Nov 10 03:11:07 2026] {message}")["faults"]
    assert (fault["fault"], fault["class"], fault["action"]) == ("host.kernel.defect", "driver", "none")


@pytest.mark.parametrize("message", CRASHES)
def test_what_a_kernel_says_when_it_or_a_part_breaks_is_a_fault(message, tell):
    (fault,) = tell(f"[Tue Nov 10 03:11:07 2026] {message}")["faults"]
    assert (fault["fault"], fault["action"] != "none") == (CRASHES[message], True)


@pytest.mark.parametrize(
    "message",
    [
        "traps: python[8] general protection fault ip:7f1 sp:7ff error:0 in libc.so.6[7f0000+1b]",
        "[Hardware Error]: Deferred error, no action required.",
        "Internal error: the request was wrong",
        "mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 5: 9c00000000800400",
    ],
)
def test_what_sounds_like_it_is_none(message, tell):
    assert tell(f"[Tue Nov 10 03:11:07 2026] {message}")["faults"] == []


LOST = "NVRM: The NVIDIA GPU {} has fallen off the bus"


def test_the_source_of_a_message_is_no_fault(tell):
    lines = LOST.format("%04x:%02x:%02x.%x"), "NVRM: GPU %s: GPU has fallen off the bus.", "usb 1-1: ok"
    assert tell(*(f"[ 12.5] {line}" for line in lines))["faults"] == []


@pytest.mark.parametrize("name", ["%d", "%s%s", "%04x"])
def test_the_name_of_a_process_makes_no_message_a_source(name, tell):
    locked = f"watchdog: BUG: soft lockup - CPU#4 stuck for 26s! [{name}:1122]"
    xid = f"NVRM: Xid (PCI:0000:9d:00): 79, pid=1, name={name}, GPU has fallen off the bus."
    faults = tell(f"[ 12.5] {locked}", f"[ 13.5] {xid}")["faults"]
    assert {fault["fault"] for fault in faults} == {"host.kernel.deadlock", "gpu.xid.79"}
