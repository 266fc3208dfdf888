"""Every adapter is present, is the one that the inventory names, and has its link."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]


@pytest.mark.fault("ib.hca.missing")
def test_hca_answers(hca):
    """Check that the adapter of this rail answers."""
    assert hca.answers, f"no adapter answers as {hca.slot} on rail {hca.declared.rail}"


@pytest.mark.phase("seatrial")
@pytest.mark.fault("host.config.drift")
def test_hca_guid_is_the_inventorys(hca, measure):
    """Compare the adapter's GUID with the inventory: the fabric identifies the adapter by it."""
    measure("guid", hca.guid, equals=hca.declared.guid)


@pytest.mark.fault("ib.link.down")
def test_hca_link(hca, limits, measure):
    """Check that the link is active at full rate."""
    assert hca.state == "ACTIVE", f"port state {hca.state}, expected ACTIVE (physical state {hca.phys_state})"
    measure("rate", hca.rate_gbps, at_least=limits.hca_rate)


@pytest.mark.fault("nic.link.down")
def test_front_end_link(nic, measure):
    """Check that every front-end interface has carrier and full speed."""
    assert nic.carrier, "no carrier"
    measure("speed", nic.speed_mbps, at_least=nic.declared.speed_mbps)
