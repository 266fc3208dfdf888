"""What several tools say of one port becomes one account of it."""

from assay.fabric.port_facts import PortFacts, classic_saturated, joined
from assay.model.cable import Port

PORT = Port("0x" + "a" * 16, 1)


def test_two_tools_complete_each_other():
    link = PortFacts(PORT, state="active", rate="4xNDR")
    count = PortFacts(PORT, counters={"SymbolErrorCounter": 3})
    both = joined([link, count])[PORT]
    assert (both.state, both.rate, both.counters) == ("active", "4xNDR", {"SymbolErrorCounter": 3})


def test_a_wide_counter_lifts_the_saturation_of_the_narrow_one():
    narrow = PortFacts(PORT, counters={"LinkDownedCounter": 255}, saturated=frozenset({"LinkDownedCounter"}))
    wide = PortFacts(PORT, counters={"LinkDownedCounter": 300})
    assert joined([narrow, wide])[PORT].saturated == frozenset()
    assert joined([wide, narrow])[PORT].saturated == {"LinkDownedCounter"}


def test_a_classic_counter_at_its_end_means_at_least():
    counts = {
        "SymbolErrorCounter": 65535,
        "LinkDownedCounter": 255,
        "PortRcvErrors": 255,
        "LocalLinkIntegrityErrors": 15,
    }
    assert classic_saturated(counts) == {"SymbolErrorCounter", "LinkDownedCounter", "LocalLinkIntegrityErrors"}
