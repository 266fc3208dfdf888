"""Power comes in twice over, and goes where it should."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]


@pytest.mark.fault("psu.failed")
def test_power_supplies_stand_in_for_each_other(bmc):
    """Refuse a group of power supplies that has lost its redundancy; a busbar's node has no group."""
    groups = bmc.redundancy.psu
    lost = [f"group {group} is {groups[group].health}" for group in groups if groups[group].health != "OK"]
    assert not lost, ", ".join(lost)


@pytest.mark.fault("psu.failed")
def test_power_comes_in_cleanly(node):
    """Refuse a power supply whose input is lost or out of its range."""
    wrong = [f"PSU {psu.slot} has {psu.input}" for psu in node.psus if psu.input != "Normal"]
    assert not wrong, ", ".join(wrong)


@pytest.mark.phase("production")
@pytest.mark.fault("psu.failed")
def test_power_supplies_share_the_load(node, limits, measure):
    """Compare the supplies: one that gives little while the others carry the node is about to leave."""
    given = [psu.output_w for psu in node.psus]
    most = max(given, default=0)
    measure("psu_share", 100 * (most - min(given, default=0)) / (most or 1), at_most=limits.psu_spread, unit="%")


@pytest.mark.fault("bmc.unhealthy")
def test_node_draws_what_it_may(bmc, limits, measure):
    """Hold what the node draws between what a running node needs and what its feed carries."""
    measure("drawn", bmc.power.drawn_w, at_least=limits.node_power_low, at_most=limits.node_power)


@pytest.mark.fault("host.config.drift")
def test_power_is_not_capped(bmc, limits, measure):
    """Refuse a power cap below what the node may draw: its GPUs would slow down for it."""
    if bmc.power.capped:
        measure("power_cap", bmc.power.cap_w, at_least=limits.node_power)


@pytest.mark.fault("bmc.unhealthy")
def test_voltages(bmc):
    """Hold every voltage between the thresholds that its own sensor has."""
    volts = bmc.sensor.voltage
    wrong = [
        f"{name} {volts[name].v} V"
        for name in volts
        if ("high_v" in volts[name] and volts[name].v > volts[name].high_v)
        or ("low_v" in volts[name] and volts[name].v < volts[name].low_v)
    ]
    assert not wrong, f"beyond its own thresholds: {', '.join(wrong)}"
