"""What several tools say of one port becomes one account of it."""

from assay.fabric.discovery import PortFacts, find_saturated_counters, merge_port_facts
from assay.model.specs.fabric.cable import PortId

PORT = PortId("0x" + "a" * 16, 1)


def test_two_tools_complete_each_other():
    link = PortFacts(PORT, state="active", rate="4xNDR")
    count = PortFacts(PORT, counters={"SymbolErrorCounter": 3})
    both = merge_port_facts([link, count])[PORT]
    assert (both.state, both.rate, both.counters) == ("active", "4xNDR", {"SymbolErrorCounter": 3})


def test_a_wide_counter_lifts_the_saturation_of_the_narrow_one():
    narrow = PortFacts(PORT, counters={"LinkDownedCounter": 255}, saturated=frozenset({"LinkDownedCounter"}))
    wide = PortFacts(PORT, counters={"LinkDownedCounter": 300})
    assert merge_port_facts([narrow, wide])[PORT].saturated == frozenset()
    assert merge_port_facts([wide, narrow])[PORT].saturated == {"LinkDownedCounter"}


def test_a_classic_counter_at_its_end_means_at_least():
    counts = {
        "SymbolErrorCounter": 65535,
        "LinkDownedCounter": 255,
        "PortRcvErrors": 255,
        "LocalLinkIntegrityErrors": 15,
    }
    assert find_saturated_counters(counts) == {"SymbolErrorCounter", "LinkDownedCounter", "LocalLinkIntegrityErrors"}
