"""File systems are writable and have room."""

import pytest

pytestmark = [pytest.mark.phase("production"), pytest.mark.passive]


def mounts(node, remote=False):
    """Return the file systems on the node's own disks, or those of servers."""
    every = [node.file_systems[name] for name in node.file_systems]
    return [mount for mount in every if mount.remote is remote]


@pytest.mark.fault("host.file-system")
def test_file_systems_can_be_written(node):
    """Check that no file system became read-only, as most do at their first error."""
    wrong = [str(mount.mount_point) for mount in mounts(node) if mount.read_only]
    assert not wrong, f"read-only: {', '.join(wrong)}"


@pytest.mark.fault("host.file-system")
def test_file_systems_have_room(node, limits, measure):
    """Compare the used space of each file system with the limit."""
    for mount in mounts(node):
        place = f"of {mount.mount_point}"
        measure("file_system_used", mount.space.used_percent, at_most=limits.file_system_used, place=place)


@pytest.mark.fault("host.file-system")
def test_file_systems_have_inodes(node, limits, measure):
    """Compare the used inodes of each file system with the limit: without a free inode, no file can be made."""
    for mount in mounts(node):
        if mount.type not in ("vfat", "btrfs"):
            place = f"of {mount.mount_point}"
            measure("inodes_used", mount.space.inodes_used_percent, at_most=limits.inodes_used, place=place)


@pytest.mark.fault("storage.mount")
def test_declared_file_systems_are_mounted(node, spec):
    """Check that each file system of the spec is mounted, is of its type, and answers."""
    found = {str(mount.mount_point): mount for mount in map(node.file_systems.__getitem__, node.file_systems)}
    wrong = []
    for point, types in spec.mounts.items():
        mount = found.get(point)
        if mount is None:
            wrong.append(f"{point} is not mounted")
        elif mount.type not in list(types):
            wrong.append(f"{point} is {mount.type}, expected {' or '.join(types)}")
        elif not mount.space.size_bytes:
            wrong.append(f"{point} is empty")
    assert not wrong, "; ".join(wrong)


@pytest.mark.fault("host.file-system")
def test_servers_of_files_answer(node):
    """Check that every file server of the node answers: otherwise each process that uses its files hangs."""
    silent = [str(mount.mount_point) for mount in mounts(node, remote=True) if not mount.space.size_bytes]
    assert not silent, f"empty: {', '.join(silent)}"
