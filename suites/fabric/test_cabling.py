"""The cables are where the design has them."""

import pytest

pytestmark = [pytest.mark.phase("fabric"), pytest.mark.passive]


@pytest.mark.phase("seatrial", "fabric")
@pytest.mark.fault("ib.cabling")
def test_link_leads_where_it_should(link):
    """Find the designed cable at every adapter."""
    wrong = [one.summary for one in link.misplaced]
    assert not wrong, f"{'; '.join(wrong)}; expected {link.expected.a} to {link.expected.b}"


@pytest.mark.phase("seatrial", "fabric")
@pytest.mark.fault("ib.link.down")
def test_link_runs_at_the_designed_rate(link):
    """Compare the negotiated rate with the design's."""
    wrong = [one.summary for one in link.slow]
    assert not wrong, f"{'; '.join(wrong)}; expected {link.expected.rate}"


@pytest.mark.fault("telemetry.lost")
def test_discovery_is_whole(fabric):
    """Refuse a discovery that did not see everything."""
    assert not fabric.problems, "; ".join(fabric.problems)


@pytest.mark.fault("ib.cabling")
def test_every_cable_is_in_its_place(fabric, measure):
    """Count the cables that are missing, swapped, moved, or not in the design."""
    wrong = fabric.misplaced
    measure("cables_matching", fabric.comparison.matching)
    assert not wrong, f"{len(wrong)} wrong: {'; '.join(one.summary for one in wrong[:3])}"


@pytest.mark.fault("ib.link.down")
def test_no_link_is_slow(fabric):
    """Count the links below the designed rate, also those between switches."""
    wrong = fabric.slow
    assert not wrong, f"{len(wrong)} slow: {'; '.join(one.summary for one in wrong[:3])}"
