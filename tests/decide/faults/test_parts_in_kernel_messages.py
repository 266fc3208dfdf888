"""Each message of the kernel about a disk or a file system names its part, in every spelling."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ('XFS (nvme1n1p1): metadata I/O error in "xfs_da_read_buf+0xd9/0x130" at daddr 0x8 len 8 error 5', "nvme1n1p1"),
        ("XFS (dm-0): Corruption of in-memory data detected. Shutting down filesystem", "dm-0"),
        ("EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory", "sda1"),
        ("EXT4-fs (sda1): Remounting filesystem read-only", "sda1"),
        ("BTRFS error (device dm-3 state EA): bdev errs: wr 1", "dm-3"),
        ("BTRFS critical (device nvme0n1p2): corrupt leaf: root=5 block=3", "nvme0n1p2"),
        ("Buffer I/O error on dev sdb, logical block 5, async page read", "sdb"),
        ("I/O error, dev sdc, sector 2048 op 0x0:(READ) flags 0x80700", "sdc"),
    ],
)
def test_the_part_is_named(said, part, tell):
    assert [one["subject"] for one in tell(f"[ 12.5] {said}")["faults"]] == [part]
