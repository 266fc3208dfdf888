"""Power comes in redundantly, and the node draws no more than it may."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]


@pytest.mark.fault("psu.failed")
def test_power_supplies_stand_in_for_each_other(bmc):
    """Check that no group of power supplies has lost its redundancy; a node on a busbar has no group."""
    groups = bmc.redundancy.psu
    lost = [f"group {group} is {groups[group].health}" for group in groups if groups[group].health != "OK"]
    assert not lost, ", ".join(lost)


@pytest.mark.fault("psu.failed")
def test_power_comes_in_cleanly(node):
    """Check that no power supply has lost its input, and that each input is within its range."""
    wrong = [f"psu{psu.slot} has {psu.input}" for psu in node.psus if psu.input != "Normal"]
    assert not wrong, ", ".join(wrong)


@pytest.mark.phase("production")
@pytest.mark.fault("psu.failed")
def test_power_supplies_share_the_load(node, limits, measure):
    """Compare the loads of the power supplies: one that gives little while others carry the node will soon fail."""
    given = [psu.output_w for psu in node.psus]
    most = max(given, default=0)
    measure("psu_share", 100 * (most - min(given, default=0)) / (most or 1), at_most=limits.psu_spread, unit="%")


@pytest.mark.fault("bmc.event.power")
def test_node_draws_what_it_may(bmc, limits, measure):
    """Check that the node draws at least what a running node needs, and at most what its feed carries."""
    measure("drawn", bmc.power.drawn_w, at_least=limits.node_power_low, at_most=limits.node_power)


@pytest.mark.fault("host.config.drift")
def test_power_is_not_capped(bmc, limits, measure):
    """Check that no power cap is below what the node may draw: it would slow the GPUs."""
    if bmc.power.capped:
        measure("power_cap", bmc.power.cap_w, at_least=limits.node_power)


@pytest.mark.fault("bmc.event.voltage")
def test_voltages(bmc):
    """Compare every voltage with the thresholds of its own sensor."""
    volts = bmc.sensor.voltage
    wrong = [
        f"{name} {volts[name].v} V"
        for name in volts
        if ("high_v" in volts[name] and volts[name].v > volts[name].high_v)
        or ("low_v" in volts[name] and volts[name].v < volts[name].low_v)
    ]
    assert not wrong, f"beyond its own thresholds: {', '.join(wrong)}"
