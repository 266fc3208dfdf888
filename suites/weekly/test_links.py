"""Over the week, the links of nodes stay up, behave like their peers, and do not degrade."""

import pytest

pytestmark = [pytest.mark.phase("weekly"), pytest.mark.passive, pytest.mark.fault("ib.ageing")]


def test_link_errs_no_more_than_its_peers(link_week, fabric_limits, measure):
    """Compare the errors at both ends with the ports of the same rail, switch and module type."""
    for port in link_week:
        errors = port.stand("errors")
        measure("errors_score", errors.score, at_most=fabric_limits.peer_score, unit="deviations", place=errors.place)


def test_link_has_no_more_bit_errors_than_its_peers(link_week, fabric_limits, measure):
    """Compare the week's usual bit error ratio at both ends with the peers."""
    for port in link_week:
        ber = port.stand("ber_power")
        measure("ber_score", ber.score, at_most=fabric_limits.peer_score, unit="deviations", place=ber.place)


def test_link_repairs_no_worse_blocks_than_its_peers(link_week, fabric_limits, measure):
    """Compare how many wrong symbols the error correction met in one block, at both ends, with the peers."""
    for port in link_week:
        bins = port.stand("fec_bin")
        measure("fec_score", bins.score, at_most=fabric_limits.peer_score, unit="deviations", place=bins.place)


def test_modules_are_no_hotter_than_their_peers(link_week, fabric_limits, measure):
    """Compare the week's usual module temperature at both ends with the peers."""
    for port in link_week:
        heat = port.stand("temperature")
        measure("temperature_score", heat.score, at_most=fabric_limits.peer_score, unit="deviations", place=heat.place)


def test_light_is_that_of_its_peers(link_week, fabric_limits, measure):
    """Compare the weakest lane's light and the highest laser current with the peers."""
    for port in link_week:
        light, bias = port.stand("light"), port.stand("bias")
        measure("light_score", light.score, at_most=fabric_limits.peer_score, unit="deviations", place=light.place)
        measure("bias_score", bias.score, at_most=fabric_limits.peer_score, unit="deviations", place=bias.place)


def test_nothing_creeps(link_week, fabric_limits, measure):
    """Compare how far readings drift in a week with their limits: light, temperature, bit errors, laser current."""
    for port in link_week:
        light, heat, ber = port.drift("light"), port.drift("temperature"), port.drift("ber_power")
        measure("rx_power_drift", light, at_most=fabric_limits.rx_power_drift, unit="dB", place=port.place)
        measure("temperature_drift", heat, at_most=fabric_limits.module_temperature_drift, unit="°C", place=port.place)
        measure("ber_drift", ber, at_most=fabric_limits.ber_drift, unit="decades", place=port.place)
        measure("bias_drift", port.drift("bias"), at_most=fabric_limits.bias_drift, unit="mA", place=port.place)


def test_link_does_not_flap(link_week, fabric_limits, measure):
    """Count how often the link went down within any day of the week."""
    for port in link_week:
        measure(
            "downs_a_day", port.downs_a_day, at_most=fabric_limits.link_downed_a_day, unit="count", place=port.place
        )
