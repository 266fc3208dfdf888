"""Links carry data without errors and stay up. Optics stay within their makers' limits.

Checks of a node's link judge both of its ends. Checks of links between switches judge the worst port of each switch.
"""

from operator import attrgetter

import pytest

pytestmark = [pytest.mark.phase("fabric"), pytest.mark.passive]


@pytest.mark.fault("ib.link.errors")
def test_link_counts_few_errors(link, fabric_limits, measure):
    """Count the errors at both ends of the link since the last scan."""
    for port in link.ports:
        _few_errors(port, fabric_limits, measure)


@pytest.mark.fault("ib.link.errors")
def test_links_between_switches_count_few_errors(switch, fabric_limits, measure):
    """Count the errors of the switch's ports to other switches since the last scan."""
    for port in _worst(switch.ports, "symbol_errors", "recoveries", "receive_errors"):
        _few_errors(port, fabric_limits, measure)


@pytest.mark.fault("ib.link.flap")
def test_link_stays_up(link, fabric_limits, measure):
    """Count how often the link went down since the last scan; reboots of its node do not count."""
    for port in link.ports:
        _few_downs(port, fabric_limits, measure)


@pytest.mark.fault("ib.link.flap")
def test_links_between_switches_stay_up(switch, fabric_limits, measure):
    """Count how often links to other switches went down since the last scan."""
    for port in _worst(switch.ports, "downs"):
        _few_downs(port, fabric_limits, measure)


@pytest.mark.fault("ib.ber")
def test_link_has_few_bit_errors(link, fabric_limits, measure):
    """Compare the bit error ratio at both ends with the limit for the link's speed."""
    for port in link.ports:
        _few_bit_errors(port, fabric_limits, measure)


@pytest.mark.fault("ib.ber")
def test_links_between_switches_have_few_bit_errors(switch, fabric_limits, measure):
    """Compare the bit error ratio of the worst link to another switch with its limit."""
    for port in _worst(switch.ports, "ber"):
        _few_bit_errors(port, fabric_limits, measure)


@pytest.mark.fault("ib.optics")
def test_modules_are_cool(link, fabric_limits, measure):
    """Compare the temperature of the module at each end with its limit."""
    for port in link.ports:
        measure("module_temperature", port.temperature_c, at_most=fabric_limits.module_temperature, place=port.place)


@pytest.mark.fault("ib.optics")
def test_every_lane_has_light(link, fabric_limits, measure):
    """Compare the weakest and the strongest lane, sent and received, with the limits of the optics."""
    for port in link.ports:
        for power in _ends(port.tx_power_dbm):
            measure(
                "tx_power",
                power,
                at_least=fabric_limits.tx_power_low,
                at_most=fabric_limits.tx_power,
                unit="dBm",
                place=port.place,
            )
        for power in _ends(port.rx_power_dbm):
            measure(
                "rx_power",
                power,
                at_least=fabric_limits.rx_power_low,
                at_most=fabric_limits.rx_power,
                unit="dBm",
                place=port.place,
            )


def _few_errors(port, fabric_limits, measure):
    at = port.place
    measure("symbol_errors", port.symbol_errors, at_most=fabric_limits.symbol_errors, unit="count/h", place=at)
    measure("recoveries", port.recoveries, at_most=fabric_limits.link_recoveries, unit="count/h", place=at)
    measure("receive_errors", port.receive_errors, at_most=fabric_limits.receive_errors, unit="count/h", place=at)


def _few_downs(port, fabric_limits, measure):
    measure("downs", port.downs, at_most=fabric_limits.link_downed, unit="count", place=port.place)


def _few_bit_errors(port, fabric_limits, measure):
    limit = fabric_limits.symbol_ber if port.ber_kind == "symbol" else fabric_limits.effective_ber
    measure(f"{port.ber_kind}_ber", port.ber, at_most=limit, unit="errors/bit", place=port.place)


def _worst(ports, *numbers):
    """Return the worst port by each of these numbers; nothing if the switch has no links to other switches."""
    return dict.fromkeys(max(ports, key=attrgetter(number)) for number in numbers if ports)


def _ends(lanes):
    return [min(lanes), max(lanes)] if lanes else []
