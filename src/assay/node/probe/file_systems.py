"""Reads the mounted file systems on disks and servers: how full each is, and whether it is read-only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.probe.node_access import LazyTree, NodeRoot, TimedQuestion, leaf_for_error, run_tool

MOUNTS = "/proc/mounts"
DF_S = 2.0
ON_DISKS = {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "reiserfs", "vfat", "xfs", "zfs"}
ON_SERVERS = {"9p", "beegfs", "ceph", "cifs", "gpfs", "lustre", "nfs", "nfs4", "panfs", "virtiofs", "wekafs"}
OCTAL = re.compile(r"\\([0-7]{3})")


class MountEntry(NamedTuple):
    """One line of /proc/mounts."""

    source: str
    point: str
    type: str
    options: list[str]

    @property
    def name(self) -> str:
        """The mount point as systemd names its units: `-` for `/`, `var-lib` for `/var/lib`."""
        return self.point.strip("/").replace("/", "-") or "-"


def read_file_systems(root: NodeRoot) -> LazyTree:
    """Return the `file_systems` branch by name of the mount. A server that hangs delays only its own mount."""
    try:
        mounts = list(find_real_mounts(root.read_text(MOUNTS)))
    except OSError as error:
        return leaf_for_error(MOUNTS, error)
    return {mount.name: _mount(root, mount) for mount in mounts} or absent(f"{MOUNTS} lists no real file system")


def _mount(root: NodeRoot, mount: MountEntry) -> LazyTree:
    return {
        "mount_point": value(mount.point),
        "source": value(mount.source),
        "type": value(mount.type),
        "remote": value(mount.type in ON_SERVERS),
        "read_only": value("ro" in mount.options),
        "space": TimedQuestion(DF_S, partial(read_space, root, mount.point)),
    }


def find_real_mounts(mounts: str) -> Iterator[MountEntry]:
    """Yield the root of any type, and every file system of a disk or server at its first mount point."""
    seen: set[tuple[str, str]] = set()
    listed = [_parse_mount(line.split()) for line in mounts.splitlines() if len(line.split()) > 3]
    last_root = next((mount for mount in reversed(listed) if mount.point == "/"), None)
    for mount in ([last_root] if last_root else []) + [mount for mount in listed if mount.point != "/"]:
        key = (mount.source, mount.type)
        if key not in seen and (mount is last_root or mount.type in ON_DISKS | ON_SERVERS):
            seen.add(key)
            yield mount


def _parse_mount(fields: list[str]) -> MountEntry:
    source, point = (OCTAL.sub(lambda code: chr(int(code[1], 8)), field) for field in fields[:2])
    return MountEntry(source, point, fields[2], fields[3].split(","))


def read_space(root: NodeRoot, point: str) -> ReadingTree:
    """Run df for a mount point: `size_bytes`, and `used_percent` and `inodes_used_percent` of what users may use."""
    columns = "--output=size,used,avail,itotal,iused"
    return run_tool(["df", "-B1", columns, root.local_path(point)], DF_S, parse_df)


def parse_df(text: str) -> ReadingTree:
    """Parse the last row of `df -B1 --output=size,used,avail,itotal,iused`; `-` or 0 inodes means that none count."""
    rows = [line.split() for line in text.splitlines()]
    if not rows or len(rows[-1]) != 5 or not all(part.isdecimal() for part in rows[-1][:3]):
        return failed(f"df: cannot make sense of {text[-80:]!r}")
    size, used, available = map(int, rows[-1][:3])
    return {
        "size_bytes": value(size),
        "used_percent": _share(used, used + available),
        "inodes_used_percent": _inodes(*rows[-1][3:]),
    }


def _inodes(total: str, used: str) -> ReadingTree:
    if not (total.isdecimal() and used.isdecimal() and int(total)):
        return absent("this file system does not count inodes")
    return _share(int(used), int(total))


def _share(used: int, total: int) -> ReadingTree:
    return value(round(100 * used / total, 1)) if total else absent("the file system has no size")
