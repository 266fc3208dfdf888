"""A message that a mail or a terminal wrapped at its width is read as one, or told."""

from __future__ import annotations

import textwrap

import pytest

from assay.observe.logs.kernel_log_search import CHUNK_BYTES

XID = "Mar 12 04:11:02 n1 kernel: [ 5.5] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=a, GPU has fallen off the bus."


@pytest.mark.parametrize("quote", ["", "> ", ">> ", "| ", "  "])
@pytest.mark.parametrize("before", ["Xid", "(PCI", "79,"])
def test_an_xid_that_was_wrapped_is_never_no_fault(quote, before, tell):
    first, second = XID.split(f" {before}")
    document = tell(f"{quote}{first}", f"{quote}{before}{second}", f"{quote}Mar 12 04:12:02 n1 kernel: eth0: up")
    assert document["uncounted"] or [one["subject"] for one in document["faults"]] == ["0000:3b:00"]


def test_an_xid_without_its_number_is_not_joined_with_what_follows(tell):
    document = tell(XID.partition(" 79,")[0], "7 of 8 links are up", XID.replace("79,", "31,"))
    assert ([one["fault"] for one in document["faults"]], "Xid" in document["uncounted"]) == (["gpu.xid.31"], True)


WRAPPED = {
    "host.kernel.deadlock": "watchdog: BUG: soft lockup - CPU#88 stuck for 26s! [kworker/88:1:1122]",
    "hca.health": "mlx5_core 0000:c1:00.0 ens3: poll_health:841:(pid 0): device's health compromised - reached miss",
    "pcie.fatal": "nvidia 0000:16:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
    "host.memory.uncorrected": "EDAC MC1: 1 UE memory read error on CPU_SrcID#0_MC#1_Chan#0_DIMM#0 (channel:0 slot:0)",
    "host.kernel.panic": "Kernel panic - not syncing: Fatal machine check",
    "host.filesystem.error": "XFS (nvme0n1p3): Filesystem has been shut down due to log error (0x2).",
    "gpu.xid.119": "NVRM: Xid (PCI:0000:9d:00): 119, pid=2921, name=nv-hostengine, Timeout after 6s of waiting",
    "nvswitch.sxid.20034": "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 28 LTSSM Fault Up",
}
HEALTHY = "Mar 12 04:10:02 n1 kernel: [ 4.5] IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready"


def cut(line: str, width: int) -> list[str]:
    return [line[start : start + width] for start in range(0, len(line), width)]


@pytest.mark.parametrize("name", WRAPPED)
def test_a_message_that_a_terminal_or_a_mail_wrapped_is_read(name, tell):
    for width in (45, 60, 72, 80, 100):
        for wrap in (cut, lambda line, width: textwrap.wrap(line, width, break_long_words=False)):
            words = ["Hello, this is what we saw on the node this morning, before we drained it.", ""] * 9
            lines = [*words, HEALTHY, f"Mar 12 04:11:02 n1 kernel: [ 5.5] {WRAPPED[name]}", HEALTHY]
            (fault,) = tell(*(part for line in lines for part in wrap(line, width)))["faults"]
            assert (fault["fault"], fault["host"], fault["lines"]) == (name, "n1", 1), (width, wrap)
            assert fault["first"].endswith("-03-12T04:11:02")


@pytest.mark.parametrize("width", [60, 80])
def test_a_wrapped_message_is_read_over_the_edge_of_two_pieces(width, tell):
    log = cut(HEALTHY, width) * (CHUNK_BYTES // (len(HEALTHY) + 2) - 2)
    left = CHUNK_BYTES - sum(len(line) + 1 for line in log)
    for name in ("host.kernel.deadlock", "gpu.xid.119"):
        wrapped = cut(f"Mar 12 04:11:02 n1 kernel: [ 5.5] {WRAPPED[name]}", width)
        most = (left - len(wrapped[0]) - 1) // 4  # of each of four lines that fill the piece up
        fill = [HEALTHY[: most - 1]] * 3
        fill.append(HEALTHY[: left - len(wrapped[0]) - 1 - 3 * most - 1])
        assert sum(len(line) + 1 for line in [*log, *fill, wrapped[0]]) == CHUNK_BYTES
        (fault,) = tell(*log, *fill, *wrapped)["faults"]
        assert (fault["fault"], fault["host"], fault["lines"]) == (name, "n1", 1)


def test_lines_that_were_not_wrapped_are_not_joined(tell):
    lines = ["mlx5_core 0000:c1:00.0: module 0, ok", "Fatal error 3 detected by our own test"]
    stamped = [f"Mar 12 04:11:02 n1 kernel: [ 5.5] {lines[0]}", lines[1], HEALTHY]
    assert tell(*stamped)["faults"] == []
