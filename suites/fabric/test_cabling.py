"""Every cable is where the design has it."""

import pytest

pytestmark = [pytest.mark.phase("fabric"), pytest.mark.passive]


@pytest.mark.phase("seatrial", "fabric")
@pytest.mark.fault("ib.cabling")
def test_link_leads_where_it_should(link):
    """Check that the cable at each adapter is the one of the design."""
    wrong = [one.summary for one in link.misplaced]
    assert not wrong, f"{'; '.join(wrong)}; expected {' and '.join(f'{one.a} to {one.b}' for one in link.cables)}"


@pytest.mark.phase("seatrial", "fabric")
@pytest.mark.fault("ib.link.down")
def test_link_runs_at_the_designed_rate(link):
    """Compare the link's negotiated rate with the design."""
    wrong = [one.summary for one in link.slow]
    assert not wrong, f"{'; '.join(wrong)}; expected {link.expected.rate}"


@pytest.mark.fault("telemetry.lost")
def test_discovery_is_whole(fabric):
    """Check that the discovery saw the whole fabric."""
    assert not fabric.problems, "; ".join(fabric.problems)


@pytest.mark.fault("ib.cabling")
def test_every_cable_is_in_its_place(fabric, measure):
    """List the cables that are missing, swapped, moved, or not in the design."""
    wrong = fabric.misplaced
    measure("cables_matching", fabric.comparison.matching)
    assert not wrong, f"{len(wrong)} wrong: {'; '.join(one.summary for one in wrong[:3])}"


@pytest.mark.fault("ib.link.down")
def test_no_link_is_slow(fabric):
    """List the links below the designed rate, including those between switches."""
    wrong = fabric.slow
    assert not wrong, f"{len(wrong)} slow: {'; '.join(one.summary for one in wrong[:3])}"
