"""Local drives read at full speed, and what is written to them, or to the shared storage, is there again."""

import pytest

pytestmark = [pytest.mark.phase("test"), pytest.mark.active]


@pytest.mark.fault("nvme.slow")
def test_drive_reads_at_speed(nvme, node, limits, measure):
    """Compare the sequential read speed of every drive with its limit."""
    measure("nvme_read", node.active.nvme_read.drives[nvme.slot].mb_s, at_least=limits.nvme_read)


@pytest.mark.fault("nvme.data.wrong")
def test_drive_keeps_what_was_written(node):
    """Read back a file that was written with checksums."""
    assert node.active.fio_verify.intact, "what was read back is not what was written"


@pytest.mark.fault("storage.data.wrong")
def test_shared_storage_keeps_what_was_written(node, measure):
    """Read back a file that was written to the shared storage with checksums, and record how fast that was."""
    stored = node.active.shared_storage
    assert stored.intact, "what was read back is not what was written"
    measure("storage_write", stored.write_mb_s)
    measure("storage_read", stored.read_mb_s)


@pytest.mark.fault("storage.slow")
def test_shared_storage_as_fast_as_in_the_fleet(node, limits, measure):
    """Compare how fast this node writes to the shared storage, and reads from it, with the median of other nodes."""
    stored, fleet = node.active.shared_storage, node.fleet
    for name, seen in (("storage_write", stored.write_mb_s), ("storage_read", stored.read_mb_s)):
        below = 100 * (1 - seen / fleet[name].median)
        measure(f"{name}_below_fleet", below, at_most=limits.storage_below_fleet, unit="%")
