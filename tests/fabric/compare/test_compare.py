"""Whatever is done to a fabric's cables is named exactly: nothing merged, nothing invented, nothing lost."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.discovery import AGGREGATION_NODE, DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.model.facts import to_json
from assay.model.specs.fabric.cable import PortId


def seen(plan, cables, problems=(), extra=()) -> FabricDiscovery:
    """The discovery of `cables` on the plan's devices that they reach, as any tool would deliver it."""
    reached = {port.guid for cable in cables for port in cable[:2]}
    devices = {
        guid: DiscoveredDevice(guid, d.kind, d.ports, d.description)
        for guid, d in plan.devices.items()
        if guid in reached
    }
    return FabricDiscovery(cables, devices | {device.guid: device for device in extra}, problems)


def as_built(plan) -> list[DiscoveredCable]:
    return [DiscoveredCable(cable.a.port_id, cable.b.port_id, cable.rate) for cable in plan.cables]


def ports_of(one, which="expected"):
    cables = [getattr(pair, which) for pair in one.cables] + (list(one.cut_off) if which == "expected" else [])
    return frozenset(frozenset((c.a.port_id, c.b.port_id)) for c in cables if c)


def edges(cables):
    return frozenset(frozenset(cable[:2]) for cable in cables)


@st.composite
def mischief(draw, plan):
    """Swaps, three-cycles, moves, missing and slow cables, all on different cables; and what they must be called."""
    order = draw(st.permutations(as_built(plan)))
    take = iter(order)
    built, called = [], set()
    for size, kind in [(2, "swap")] * draw(st.integers(0, 5)) + [(3, "swap")] * draw(st.integers(0, 3)):
        ring = [next(take) for _ in range(size)]
        built += [DiscoveredCable(ring[i].a, ring[(i + 1) % size].b, "4xNDR") for i in range(size)]
        called.add((kind, edges(ring)))
    for spare in range(40, 40 + draw(st.integers(0, 5))):
        cable = next(take)
        built.append(DiscoveredCable(cable.a, PortId(cable.b.guid, spare), "4xNDR"))
        called.add(("moved", edges([cable])))
    for _ in range(draw(st.integers(0, 3))):
        called.add(("missing", edges([next(take)])))
    for _ in range(draw(st.integers(0, 5))):
        cable = next(take)
        built.append(cable._replace(rate=draw(st.sampled_from(["4xHDR", "2xNDR", "1xSDR"]))))
        called.add(("degraded", edges([cable])))
    return built + list(take), called


@given(st.data())
def test_mischief_is_recovered_exactly(small, data):
    cables, called = data.draw(mischief(small))
    comparison = compare_cabling(small, seen(small, cables))
    assert {(one.kind, ports_of(one)) for one in comparison.discrepancies} == called
    assert len(comparison.discrepancies) == len(called)
    assert comparison.verdict == ("mismatch" if called else "match")
    assert comparison.matching == len(small.cables) - sum(len(ports) for _, ports in called)


@given(st.data())
def test_every_difference_is_in_exactly_one_discrepancy(small, data):
    ports = [end.port_id for cable in small.cables for end in cable.ends] + [PortId(f"0x{n:016x}", 1) for n in range(6)]
    shuffled = data.draw(st.permutations(ports))
    kept = data.draw(st.integers(1, 56))
    rewired = [DiscoveredCable(shuffled[2 * i], shuffled[2 * i + 1], "4xNDR") for i in range(kept)]
    comparison = compare_cabling(small, seen(small, rewired))
    for which, those, others in [("expected", as_built(small), rewired), ("observed", rewired, as_built(small))]:
        named = [cable for one in comparison.discrepancies for cable in ports_of(one, which)]
        assert len(named) == len(set(named))
        assert set(named) == edges(those) - edges(others)


@given(st.data())
def test_nothing_is_concluded_from_what_a_partial_discovery_lacks(small, data):
    cables, _ = data.draw(mischief(small))
    comparison = compare_cabling(small, seen(small, cables, problems=("port 3: timed out",)))
    assert comparison.verdict == "partial"
    assert not {"missing", "device-missing", "device-replaced"} & {one.kind for one in comparison.discrepancies}
    assert all(pair.observed for one in comparison.discrepancies for pair in one.cables)


def test_a_fabric_as_designed_matches(small):
    comparison = compare_cabling(small, seen(small, as_built(small)))
    assert (comparison.verdict, comparison.expected, comparison.found, comparison.matching) == ("match", 56, 56, 56)


def test_a_faster_link_than_designed_is_no_fault(small):
    cables = [cable._replace(rate="4xXDR") for cable in as_built(small)]
    assert compare_cabling(small, seen(small, cables)).verdict == "match"


def swapped(plan, first, second):
    cables = as_built(plan)
    a, b = cables[first], cables[second]
    cables[first], cables[second] = a._replace(b=b.b), b._replace(b=a.b)
    return compare_cabling(plan, seen(plan, cables)).discrepancies


def test_a_swap_names_both_cables_with_both_their_ends_and_the_likelier_correction_first(small):
    (one,) = swapped(small, 2, 6)
    assert one.kind == "swap"
    assert one.nodes == ("n01", "n02")
    assert [(str(p.expected.b), str(p.observed.b)) for p in one.cables] == [
        ("leaf-1-2 port 1/1 (r09 U12)", "leaf-1-2 port 1/2 (r09 U12)"),
        ("leaf-1-2 port 1/2 (r09 U12)", "leaf-1-2 port 1/1 (r09 U12)"),
    ]
    assert one.corrections == (
        "exchange the plugs at leaf-1-2 port 1/1 (r09 U12) and leaf-1-2 port 1/2 (r09 U12)",
        "exchange the plugs at n01 mlx5_2 port R2 (r01 U4) and n02 mlx5_2 port R2 (r01 U14)",
    )


def test_two_rails_of_one_node_were_likelier_exchanged_at_the_node(small):
    (one,) = swapped(small, 0, 1)
    assert one.corrections[0] == "exchange the plugs at n01 mlx5_0 port R0 (r01 U4) and n01 mlx5_1 port R1 (r01 U4)"


def test_a_dead_leaf_is_one_discrepancy(small):
    dead = small.cables[0].b.guid
    cables = [cable for cable in as_built(small) if dead not in (cable.a.guid, cable.b.guid)]
    (one,) = compare_cabling(small, seen(small, cables)).discrepancies
    assert (one.kind, one.device, len(one.cables)) == ("device-missing", "leaf-1-0", 6 + 8)
    assert "leaf-1-0 (r09 U10)" in one.summary


def test_a_node_that_is_off_is_one_discrepancy(small):
    gone = {cable.a.guid for cable in small.cables_of_node("n04")}
    (one,) = compare_cabling(small, seen(small, [c for c in as_built(small) if c.a.guid not in gone])).discrepancies
    assert (one.kind, one.device, one.nodes, len(one.cables)) == ("device-missing", "n04", ("n04",), 4)


def test_a_dead_leaf_and_a_node_that_is_off_are_two(small):
    gone = {cable.a.guid for cable in small.cables_of_node("n04")} | {small.cables[0].b.guid}
    cables = [cable for cable in as_built(small) if not gone & {cable.a.guid, cable.b.guid}]
    found = compare_cabling(small, seen(small, cables)).discrepancies
    assert sorted((one.device, len(one.cables)) for one in found) == [("leaf-1-0", 14), ("n04", 3)]


def test_one_adapter_without_link_is_a_missing_cable(small):
    (one,) = compare_cabling(small, seen(small, as_built(small)[1:])).discrepancies
    assert one.kind == "missing"
    assert one.summary.startswith("no link between n01 mlx5_0 port R0 (r01 U4) and leaf-1-0 port 1/1 (r09 U10)")


def test_a_new_adapter_in_a_known_place_is_a_replacement(small):
    stranger = DiscoveredDevice("0x00000000000000ff", "hca", 1, "n01 mlx5_0")
    cables = as_built(small)
    cables[0] = cables[0]._replace(a=PortId(stranger.guid, 1))
    (one,) = compare_cabling(small, seen(small, cables, extra=[stranger])).discrepancies
    assert (one.kind, one.device) == ("device-replaced", "n01 mlx5_0")
    assert stranger.guid in one.summary


def test_a_replaced_leaf_is_one_discrepancy(small):
    old = small.cables[0].b.guid
    new = DiscoveredDevice("0x00000000000000fe", "switch", 64, "MF0;leaf-1-0:MQM9700/U1")
    cables = [
        DiscoveredCable(*(PortId(new.guid, p.number) if p.guid == old else p for p in cable[:2]), cable.rate)
        for cable in as_built(small)
    ]
    (one,) = compare_cabling(small, seen(small, cables, extra=[new])).discrepancies
    assert (one.kind, one.device, len(one.cables)) == ("device-replaced", "leaf-1-0", 14)


def test_one_new_device_in_the_places_of_two_is_two_discrepancies(small):
    new = DiscoveredDevice("0x00000000000000fb", "hca", 2, "n01 mlx5_0")
    cables = as_built(small)
    cables[0], cables[1] = cables[0]._replace(a=PortId(new.guid, 1)), cables[1]._replace(a=PortId(new.guid, 2))
    found = compare_cabling(small, seen(small, cables, extra=[new])).discrepancies
    assert [one.kind for one in found] == ["device-replaced", "moved"]


def test_a_device_that_the_design_does_not_know_is_named_once(small):
    storage = DiscoveredDevice("0x00000000000000fd", "hca", 2, "storage-1 HCA-1")
    leaf = small.cables[0].b.guid
    cables = [
        *as_built(small),
        *(DiscoveredCable(PortId(storage.guid, n), PortId(leaf, 40 + n), "4xNDR") for n in (1, 2)),
    ]
    (one,) = compare_cabling(small, seen(small, cables, extra=[storage])).discrepancies
    assert (one.kind, one.device, len(one.cables)) == ("device-unknown", "storage-1 HCA-1", 2)
    assert "leaf-1-0 port 21/1 (r09 U10)" in one.summary


def test_a_cable_between_spare_ports_is_unexpected(small):
    leaf = small.cables[0].b.guid
    loop = DiscoveredCable(PortId(leaf, 50), PortId(leaf, 51), "4xNDR")
    (one,) = compare_cabling(small, seen(small, [*as_built(small), loop])).discrepancies
    assert one.kind == "unexpected"
    assert one.cables[0].expected is None


def test_a_plug_in_another_cables_port_is_one_piece_of_work(small):
    cables = as_built(small)
    pushed_out = cables.pop(4)
    cables[0] = cables[0]._replace(b=pushed_out.b)
    (one,) = compare_cabling(small, seen(small, cables)).discrepancies
    assert (one.kind, len(one.cables)) == ("moved", 2)
    assert [bool(pair.observed) for pair in one.cables] == [True, False]


def test_aggregation_nodes_inside_switches_are_no_cables(small):
    inside = DiscoveredDevice("0x00000000000000fc", "hca", 1, AGGREGATION_NODE)
    extra = DiscoveredCable(PortId(small.cables[0].b.guid, 65), PortId(inside.guid, 1), "4xNDR")
    assert compare_cabling(small, seen(small, [*as_built(small), extra], extra=[inside])).verdict == "match"


def test_exchanged_descriptions_mean_nothing(small):
    discovery = seen(small, as_built(small))
    devices = {guid: device._replace(description="localhost HCA-3") for guid, device in discovery.devices.items()}
    assert compare_cabling(small, replace(discovery, devices=devices)).verdict == "match"


def test_json_names_every_end_with_its_place(small):
    cables = as_built(small)[1:]
    plain = to_json(compare_cabling(small, seen(small, cables)).make_answer())
    assert {k: plain[k] for k in ("verdict", "expected", "found", "matching")} == {
        "verdict": "mismatch", "expected": 56, "found": 55, "matching": 55,
    }  # fmt: skip
    (cable,) = plain["discrepancies"][0]["cables"]
    assert cable["observed"] is None
    assert cable["expected"][1] == {
        "device": "leaf-1-0", "guid": "0x0000000000005000", "port": 1,
        "label": "1/1", "rack": "r09", "u": 10, "site": "lab1",
    }  # fmt: skip


def test_discrepancies_can_be_asked_for_by_node(small):
    comparison = compare_cabling(small, seen(small, as_built(small)[1:]))
    (missing,) = (each for each in comparison.discrepancies if "n01" in each.nodes)
    assert small.cables[0].b.port_id in {end.port_id for end in missing.ends}
    assert comparison.discrepancies == (missing,)
    assert not [each for each in comparison.discrepancies if "n02" in each.nodes]


@pytest.mark.parametrize("rate", ["", "4xWARP"])
def test_a_rate_that_is_none_is_neither_slow_nor_well(small, rate):
    cables = as_built(small)
    cables[0] = cables[0]._replace(rate=rate)
    comparison = compare_cabling(small, seen(small, cables))
    assert (comparison.verdict, comparison.discrepancies) == ("partial", ())
