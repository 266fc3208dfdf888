"""No batch of cables and no rail has more outliers than chance explains."""

import pytest

pytestmark = [pytest.mark.phase("weekly"), pytest.mark.passive, pytest.mark.fault("ib.batch")]


def test_no_batch_stands_out_more_than_the_others(fabric_week, fabric_limits, measure):
    """Find the batch of cables whose outliers chance explains least."""
    batch = min(fabric_week.batches, key=lambda batch: batch.chance)
    measure("batch_chance", 100 * batch.chance, at_least=fabric_limits.chance, unit="%", place=f"for {batch}")


def test_rail_stands_out_no_more_than_the_others(rail_week, fabric_limits, measure):
    """Compute how likely it is that chance alone gives the rail so many outliers."""
    measure("rail_chance", rail_week.chance_percent, at_least=fabric_limits.chance, unit="%", place=rail_week.place)
