"""Over the week, the links between switches stay up, behave like their peers, and do not degrade."""

import pytest

pytestmark = [pytest.mark.phase("weekly"), pytest.mark.passive, pytest.mark.fault("ib.ageing")]


def test_links_between_switches_err_no_more_than_their_peers(switch_week, fabric_limits, measure):
    """Find the port whose errors exceed those of its peers most."""
    for errors in _worst(switch_week, "errors"):
        measure("errors_score", errors.score, at_most=fabric_limits.peer_score, unit="deviations", place=errors.place)


def test_links_between_switches_have_no_more_bit_errors_than_their_peers(switch_week, fabric_limits, measure):
    """Find the port whose bit error ratio exceeds that of its peers most."""
    for ber in _worst(switch_week, "ber_power"):
        measure("ber_score", ber.score, at_most=fabric_limits.peer_score, unit="deviations", place=ber.place)


def test_links_between_switches_repair_no_worse_blocks_than_their_peers(switch_week, fabric_limits, measure):
    """Find the port whose error correction met more wrong symbols in one block than that of its peers."""
    for bins in _worst(switch_week, "fec_bin"):
        measure("fec_score", bins.score, at_most=fabric_limits.peer_score, unit="deviations", place=bins.place)


def test_modules_between_switches_are_no_hotter_than_their_peers(switch_week, fabric_limits, measure):
    """Find the module whose temperature exceeds that of its peers most."""
    for heat in _worst(switch_week, "temperature"):
        measure("temperature_score", heat.score, at_most=fabric_limits.peer_score, unit="deviations", place=heat.place)


def test_light_between_switches_is_that_of_its_peers(switch_week, fabric_limits, measure):
    """Compare the port with the least light and the laser with the highest current with their peers."""
    for light in _worst(switch_week, "light"):
        measure("light_score", light.score, at_most=fabric_limits.peer_score, unit="deviations", place=light.place)
    for bias in _worst(switch_week, "bias"):
        measure("bias_score", bias.score, at_most=fabric_limits.peer_score, unit="deviations", place=bias.place)


def test_nothing_creeps_between_switches(switch_week, fabric_limits, measure):
    """Find the ports whose readings degrade most in a week."""
    for port in _creeping(switch_week, "light"):
        measure(
            "rx_power_drift", port.drift("light"), at_most=fabric_limits.rx_power_drift, unit="dB", place=port.place
        )
    for port in _creeping(switch_week, "temperature"):
        heat = port.drift("temperature")
        measure("temperature_drift", heat, at_most=fabric_limits.module_temperature_drift, unit="°C", place=port.place)
    for port in _creeping(switch_week, "ber_power"):
        measure("ber_drift", port.drift("ber_power"), at_most=fabric_limits.ber_drift, unit="decades", place=port.place)
    for port in _creeping(switch_week, "bias"):
        measure("bias_drift", port.drift("bias"), at_most=fabric_limits.bias_drift, unit="mA", place=port.place)


def test_links_between_switches_do_not_flap(switch_week, fabric_limits, measure):
    """Find the link that went down most often within any day of the week."""
    for port in sorted(switch_week, key=lambda port: port.downs_a_day)[-1:]:
        measure(
            "downs_a_day", port.downs_a_day, at_most=fabric_limits.link_downed_a_day, unit="count", place=port.place
        )


def _worst(ports, what):
    """Return where the worst port stands, as a list; an empty list for a switch without links to others."""
    return sorted((port.stand(what) for port in ports), key=lambda stand: stand.score)[-1:]


def _creeping(ports, what):
    """Return the port that degrades most, as a list."""
    return sorted(ports, key=lambda port: port.drift(what))[-1:]
