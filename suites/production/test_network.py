"""Links stay up and free of errors."""

import pytest

pytestmark = [pytest.mark.phase("test", "production"), pytest.mark.passive]


@pytest.mark.fault("ib.link.flap")
def test_link_does_not_flap(hca, limits, measure, since_last_pass):
    """Count how often the link went down or recovered since the last pass."""
    counters = hca.counters
    measure("link_downed", since_last_pass(counters.link_downed), at_most=limits.link_downed, unit="count")
    measure(
        "link_error_recovery",
        since_last_pass(counters.link_error_recovery),
        at_most=limits.link_error_recovery,
        unit="count",
    )


@pytest.mark.fault("ib.link.flap")
def test_link_is_clean(hca, limits, measure, since_last_pass):
    """Count the symbol errors since the last pass."""
    measure("symbol_error", since_last_pass(hca.counters.symbol_error), at_most=limits.symbol_error, unit="count")


@pytest.mark.fault("nic.link.down")
def test_front_end_does_not_flap(nic, limits, measure, since_last_pass):
    """Count the carrier changes of front-end interfaces since the last pass."""
    measure("carrier_changes", since_last_pass(nic.carrier_changes), at_most=limits.nic_carrier_changes, unit="count")
