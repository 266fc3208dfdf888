"""The switches are well, and so are the links between them."""

from operator import attrgetter

import pytest

pytestmark = [pytest.mark.phase("fabric"), pytest.mark.passive]


@pytest.mark.fault("ib.link.errors")
def test_links_between_switches_count_few_errors(switch, fabric_limits, measure):
    """Hold what the switch's ports to other switches counted since the last scan under its limits."""
    for port in _worst(switch.ports, "symbol_errors"):
        measure(
            "symbol_errors", port.symbol_errors, at_most=fabric_limits.symbol_errors, unit="count/h", place=port.place
        )
    for port in _worst(switch.ports, "recoveries"):
        measure("recoveries", port.recoveries, at_most=fabric_limits.link_recoveries, unit="count/h", place=port.place)
    for port in _worst(switch.ports, "receive_errors"):
        measure(
            "receive_errors",
            port.receive_errors,
            at_most=fabric_limits.receive_errors,
            unit="count/h",
            place=port.place,
        )


@pytest.mark.fault("ib.link.flap")
def test_links_between_switches_stay_up(switch, fabric_limits, measure):
    """Count how often links to other switches went down since the last scan."""
    for port in _worst(switch.ports, "downs"):
        measure("downs", port.downs, at_most=fabric_limits.link_downed, unit="count", place=port.place)


@pytest.mark.fault("ib.ber")
def test_links_between_switches_have_few_bit_errors(switch, fabric_limits, measure):
    """Judge the bit error ratio of the worst link to another switch."""
    for port in _worst(switch.ports, "ber"):
        limit = fabric_limits.symbol_ber if port.ber_kind == "symbol" else fabric_limits.effective_ber
        measure(f"{port.ber_kind}_ber", port.ber, at_most=limit, unit="errors/bit", place=port.place)


@pytest.mark.fault("ib.switch.health")
def test_switch_is_cool(switch, fabric_limits, measure):
    """Hold the switch under its warning temperature."""
    measure("switch_temperature", switch.temperature_c, at_most=fabric_limits.switch_temperature)


@pytest.mark.fault("ib.switch.health")
def test_switch_has_power_and_air(switch):
    """Find power supplies that failed and fans that stand still."""
    wrong = [f"power supply {one}" for one in switch.failed_psus]
    wrong += [f"fan {one} stands still" for one in switch.stopped_fans]
    assert not wrong, f"{switch.name}: {'; '.join(wrong)}"


def _worst(ports, what):
    """Return the worst port in a list of its own, nothing for a switch without links to others."""
    return sorted(ports, key=attrgetter(what))[-1:]
