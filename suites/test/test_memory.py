"""Host memory returns what was written to it."""

import pytest

pytestmark = [pytest.mark.phase("test"), pytest.mark.active]


@pytest.mark.fault("host.memory.errors")
def test_memory_verifies(node, limits, measure):
    """Count the mismatches of a memory test."""
    measure("memory_errors", node.active.memory.errors, at_most=limits.memory_errors, unit="count")
