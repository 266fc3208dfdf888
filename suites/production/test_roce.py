"""Adapters of an Ethernet fabric (RoCE) have the declared settings, and their links carry data without loss."""

import pytest

pytestmark = [pytest.mark.phase("test", "production"), pytest.mark.passive]


@pytest.mark.phase("seatrial", "zap", "production")
@pytest.mark.fault("host.config.drift")
def test_roce_settings(hca, spec):
    """Compare packet size, trust, paused priorities and the priority of each DSCP with the spec."""
    assert hca.link_layer == "Ethernet", f"the port is {hca.link_layer}, expected Ethernet"
    declared, qos, wrong = spec.roce, hca.roce.qos, []
    if declared.mtu is not None and hca.roce.mtu_bytes != declared.mtu:
        wrong.append(f"the packet size is {hca.roce.mtu_bytes}, expected {declared.mtu}")
    if declared.trust is not None and qos.trust != declared.trust:
        wrong.append(f"the adapter trusts {qos.trust}, expected {declared.trust}")
    if declared.pfc is not None and list(qos.pfc) != list(declared.pfc):
        wrong.append(f"paused are the priorities {list(qos.pfc)}, expected {list(declared.pfc)}")
    seen = dict(entry.split(":") for entry in qos.dscp) if declared.dscp else {}
    for dscp, priority in declared.dscp.items():
        if seen.get(dscp) != str(priority):
            wrong.append(f"DSCP {dscp} has the priority {seen.get(dscp, 'of all others')}, expected {priority}")
    assert not wrong, "; ".join(wrong)


@pytest.mark.fault("ib.link.flap")
def test_roce_link_does_not_flap(hca, limits, measure, since_last_pass):
    """Count how often the link went down since the last pass."""
    measure("link_downs", since_last_pass(hca.roce.counters.link_downs), at_most=limits.link_downed, unit="count")


@pytest.mark.fault("ib.link.errors")
def test_roce_link_is_clean(hca, limits, measure, since_last_pass):
    """Count the broken packets since the last pass, and the symbols that FEC could not correct."""
    counters = hca.roce.counters
    measure("crc_errors", since_last_pass(counters.crc_errors), at_most=limits.roce_crc_errors, unit="count")
    symbols = since_last_pass(counters.fec_uncorrected_symbols)
    measure("fec_uncorrected_symbols", symbols, at_most=limits.symbol_error, unit="count")


@pytest.mark.fault("ib.congestion")
def test_roce_loses_nothing(hca, limits, measure, since_last_pass):
    """Count the packets that the adapter discarded since the last pass: RoCE sends all after a lost one again."""
    for name in ("discards_in", "discards_out"):
        measure(name, since_last_pass(hca.roce.counters[name]), at_most=limits.hca_discards, unit="count")


@pytest.mark.fault("ib.congestion")
def test_roce_is_seldom_paused(hca, limits, measure, since_last_pass):
    """Count the pauses since the last pass, sent and received, and the packets that a switch marked (ECN)."""
    for name in ("pauses_in", "pauses_out"):
        measure(name, since_last_pass(hca.roce.counters[name]), at_most=limits.roce_pauses, unit="count")
    marked = since_last_pass(hca.roce.hw_counters.np_ecn_marked_roce_packets)
    measure("ecn_marked", marked, at_most=limits.roce_ecn_marked, unit="count")
