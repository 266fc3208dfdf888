"""Air moves, no water leaks, and nothing is too warm."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]


@pytest.mark.fault("bmc.unhealthy")
def test_temperatures(node, bmc):
    """Compare every temperature with the threshold of its own sensor."""
    heat = bmc.sensor.temperature
    hot = [
        f"{node.name_own(name)} {heat[name].c} °C, its threshold is {heat[name].high_c}"
        for name in heat
        if "high_c" in heat[name] and heat[name].c > heat[name].high_c
    ]
    assert not hot, "; ".join(hot)


@pytest.mark.fault("bmc.event.leak")
def test_nothing_leaks(bmc, spec, measure):
    """Count the leak detectors, and check that none found a leak."""
    measure("leak_detectors", len(bmc.leak), at_least=spec.leak_detectors)
    wet = [f"{name} is {bmc.leak[name].state}" for name in bmc.leak if bmc.leak[name].state != "OK"]
    assert not wet, ", ".join(wet)


@pytest.mark.fault("fan.failed")
def test_fans_turn_alike(node, limits, measure):
    """Compare the slowest fan with the fastest: a worn bearing slows a fan before it fails."""
    fastest = max(fan.rpm for fan in node.fans)
    slowest = min(fan.rpm for fan in node.fans)
    measure("fan_spread", 100 * (fastest - slowest) / (fastest or 1), at_most=limits.fan_spread, unit="%")


@pytest.mark.fault("fan.failed")
def test_fans_stand_in_for_each_other(bmc):
    """Check that no group of fans has lost its redundancy."""
    groups = bmc.redundancy.fan
    lost = [f"group {group} is {groups[group].health}" for group in groups if groups[group].health != "OK"]
    assert not lost, ", ".join(lost)
