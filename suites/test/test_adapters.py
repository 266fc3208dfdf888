"""The adapters move data at full speed, from host memory and from the GPUs."""

import pytest

pytestmark = [pytest.mark.phase("test"), pytest.mark.active]


@pytest.mark.fault("ib.write.slow")
def test_adapter_writes_from_the_host(hca, node, limits, measure):
    """Compare the speed of an adapter that writes to itself, from host memory, with its limit."""
    measure("ib_write", node.active.ib_write_bw.adapters[hca.slot].gbps, at_least=limits.hca_write)


@pytest.mark.fault("ib.write.slow")
def test_adapter_writes_from_a_gpu(hca, node, limits, measure):
    """Compare the speed of an adapter that writes to itself, from the memory of the nearest GPU, with its limit."""
    measure("ib_write_gpu", node.active.ib_write_bw_gpu.adapters[hca.slot].gbps, at_least=limits.hca_write)


@pytest.mark.fault("nic.slow")
def test_front_end_at_speed(node, spec, limits, measure):
    """Compare what the site's server received with the speed of the fastest interface."""
    fastest = max(nic.speed_mbps for nic in spec.nics) / 1000
    share = 100 * node.active.front_end.gbps / fastest
    measure("front_end_share", share, at_least=limits.front_end_share, unit="%")
