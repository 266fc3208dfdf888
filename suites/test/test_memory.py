"""Host memory returns what was written to it."""

import pytest

pytestmark = [pytest.mark.phase("test"), pytest.mark.active]


@pytest.mark.fault("host.memory.errors")
def test_memory_verifies(node, limits, measure):
    """Count the mismatches of a memory test."""
    measure("memory_errors", node.active.memory.errors, at_most=limits.memory_errors, unit="count")


@pytest.mark.fault("host.memory.errors")
def test_memory_copies_verify(node, limits, measure):
    """Count the wrong blocks and hardware incidents of stressapptest."""
    measure("stressapptest_errors", node.active.stressapptest.errors, at_most=limits.memory_errors, unit="count")
