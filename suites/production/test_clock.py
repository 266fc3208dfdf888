"""The node's clock follows a time server, so that its log lines can be compared with those of other nodes."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]

# The counters of the processors themselves; the kernel falls back to others when it no longer trusts these.
TRUSTED = ("tsc", "arch_sys_counter")


@pytest.mark.fault("host.clock")
def test_clock_is_synchronised(node):
    """Check that the node's clock follows a server."""
    sync = node.time.sync
    assert sync.synchronised, f"{sync.daemon} says that the clock is not synchronised"


@pytest.mark.fault("host.clock")
def test_clock_is_right(node, limits, measure):
    """Compare the clock's distance from true time with its limit, in both directions."""
    offset_s = node.time.sync.offset_s
    measure("clock_offset", abs(offset_s), at_most=limits.clock_offset, unit="s")


@pytest.mark.fault("host.clock")
def test_clock_source(node):
    """Check that the processors' own counter is the clock source: the kernel leaves it only if it is unstable."""
    source = node.time.clock_source
    assert source in TRUSTED, f"clock source {source}, expected {' or '.join(TRUSTED)}"
