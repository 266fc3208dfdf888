"""The GPUs of a node exchange data at full speed and without errors."""

import pytest

pytestmark = [pytest.mark.phase("test"), pytest.mark.active]


@pytest.mark.fault("collective.slow")
def test_all_reduce_bandwidth(node, limits, measure):
    """Compare the bus bandwidth of an all-reduce with its limit."""
    measure("bus_bandwidth", node.active.all_reduce.bus_bandwidth_gb_s, at_least=limits.all_reduce_bus_bandwidth)


@pytest.mark.fault("collective.wrong")
def test_all_reduce_is_right(node, measure):
    """Count the wrong results of an all-reduce."""
    measure("wrong_results", node.active.all_reduce.wrong, at_most=0)
