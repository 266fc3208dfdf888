"""The node's clock follows another, so that its log lines can be laid beside those of its peers."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]

# The counters of the processors themselves; the kernel falls back to others when it no longer trusts these.
TRUSTED = ("tsc", "arch_sys_counter")


@pytest.mark.fault("host.clock")
def test_clock_is_synchronised(node):
    """Expect the node's clock to follow a server."""
    sync = node.time.sync
    assert sync.synchronised, f"{sync.daemon} says that the clock is not synchronised"


@pytest.mark.fault("host.clock")
def test_clock_is_right(node, limits, measure):
    """Hold the distance from true time to its limit, either way."""
    offset_s = node.time.sync.offset_s
    measure("clock_offset", abs(offset_s), at_most=limits.clock_offset, unit="s")


@pytest.mark.fault("host.clock")
def test_clock_source(node):
    """Expect the processors' own counter: another one means that the kernel found it unstable, and is slow to read."""
    source = node.time.clock_source
    assert source in TRUSTED, f"clock source {source}, expected {' or '.join(TRUSTED)}"
