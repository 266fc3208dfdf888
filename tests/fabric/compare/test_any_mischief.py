"""Whatever is done to a fabric of two tiers or three comes out once, by its name: nothing merged, nothing invented."""

from collections import Counter

from hypothesis import assume, given
from hypothesis import strategies as st

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.lazy_discovery import LazyDiscovery
from assay.fabric.readers.ibnetdiscover import parse
from assay.lab.fabric.ibnetdiscover import format_net_file
from tests.support.fabrics.fat_trees import Mischief, as_built, edge, fat_trees, in_reach


@st.composite
def mischiefs(draw):
    done = Mischief(draw(fat_trees()), draw)
    if draw(st.booleans()):
        done.die("switch")
    if draw(st.booleans()):
        done.die("hca")
    for kind in draw(st.sampled_from([(), ("switch",), ("hca",), ("hca", "hca"), ("switch", "hca")])):
        if draw(st.booleans()):
            done.exchange(kind, draw(st.integers(2, 3)))
        else:
            done.replace(kind, draw(st.booleans()))
    done.cable_mischief()
    assume(len(in_reach(done.plan, done.cables).cables) == len(done.cables))  # else a part of it cannot be seen
    return done


def named(one):
    """A discrepancy as `Mischief.called` has it."""
    if one.kind == "device-exchanged":
        return one.kind, frozenset(one.device.split(" and "))
    if one.device:
        return one.kind, one.device
    cables = [pair.observed if one.kind == "unexpected" else pair.expected for pair in one.cables]
    edges = frozenset(frozenset((cable.a.port_id, cable.b.port_id)) for cable in cables if cable)
    return one.kind, next(iter(edges)) if one.kind == "unexpected" else edges


@given(mischiefs())
def test_every_deed_comes_out_exactly_once(done):
    comparison = compare_cabling(done.plan, in_reach(done.plan, done.cables, done.extra))
    assert Counter(map(named, comparison.discrepancies)) == Counter(done.called)
    assert comparison.verdict == ("mismatch" if done.called else "match")


@given(mischiefs(), st.data())
def test_of_a_partial_discovery_only_what_was_seen_is_said(done, data):
    edges = sorted(sorted(edge(cable)) for cable in done.cables)
    lost = {frozenset(one) for one in data.draw(st.lists(st.sampled_from(edges), max_size=12))}
    seen = in_reach(done.plan, [one for one in done.cables if edge(one) not in lost], done.extra, ("timed out",))
    comparison = compare_cabling(done.plan, seen)
    assert comparison.verdict == "partial"
    assert not {"missing", "device-missing", "device-replaced"} & {one.kind for one in comparison.discrepancies}
    assert all(pair.observed for one in comparison.discrepancies for pair in one.cables)
    there = set(map(edge, done.cables)) - lost
    differing = there - set(map(edge, as_built(done.plan)))
    for one in comparison.discrepancies:
        observed = {frozenset((pair.observed.a.port_id, pair.observed.b.port_id)) for pair in one.cables}
        # where boxes stand in each other's place, a cable between two of them may lead right by chance
        assert observed <= (there if one.kind == "device-exchanged" else differing)


@given(mischiefs(), st.randoms(use_true_random=False))
def test_the_quick_way_of_reading_and_the_order_of_a_dump_change_nothing(done, random):
    seen = in_reach(done.plan, done.cables, done.extra)
    records = format_net_file(seen.devices, seen.cables).split("\n\n")
    random.shuffle(records)
    listed = parse("\n\n".join(record.strip("\n") for record in records) + "\n")
    assert isinstance(listed, LazyDiscovery)
    assert compare_cabling(done.plan, listed).make_answer() == compare_cabling(done.plan, seen).make_answer()
