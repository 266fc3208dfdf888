"""Local drives read at full speed."""

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
