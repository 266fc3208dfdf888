"""Faults planted in a simulated fabric with a real subnet manager: the comparison names each of them exactly.

At 32 nodes always; at 512 nodes and three tiers among the slow tests.
"""

from datetime import UTC, datetime

import pytest

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.compare.tickets import make_cabling_tickets
from assay.fabric.readers.format_detection import read_tool_output, read_topology
from assay.fabric.readers.port_guids import read_port_guids, resolve_port_guids
from assay.fabric.scan import add_port_states
from assay.model.evidence import EvidenceDocument
from assay.model.reading import value
from assay.model.specs.fabric.cable import PortId
from tests.support.fabrics.fat_trees import fat_tree
from tests.support.fabrics.ibsim import list_lids
from tests.support.fabrics.partners import AVAILABLE, WHY_NOT, Partners

pytestmark = pytest.mark.skipif(not AVAILABLE, reason=WHY_NOT)
SIZES = {
    "32 nodes": {"units": 1, "nodes": 32, "rails": 8, "spines": 4, "pair": 8},
    "512 nodes": {"units": 4, "nodes": 32, "rails": 8, "spines": 32, "pair": 1, "pods": 4, "cores": 32, "ports": 128},
}
CABLES = {"32 nodes": 512, "512 nodes": 12_288}


@pytest.fixture(scope="module", params=["32 nodes", pytest.param("512 nodes", marks=pytest.mark.slow(minutes=3))])
def fabric(request, tmp_path_factory):
    """A fabric as designed, up under OpenSM. Every test leaves it as it found it."""
    plan = fat_tree(**SIZES[request.param], rate="4xHDR")
    running = Partners(plan, tmp_path_factory.mktemp("partners"), patience=300)
    try:
        running.manage()
        assert len(running.plan.cables) == CABLES[request.param]
        yield running
    finally:
        running.end()


@pytest.fixture(autouse=True)
def leave_it_as_designed(fabric):
    yield
    assert look(fabric).verdict == "match"


def look(fabric):
    return compare_cabling(fabric.plan, read_topology(*fabric.ask("ibnetdiscover")))


def only(fabric):
    """The one discrepancy that there is, and no doubt about it."""
    comparison = look(fabric)
    assert (comparison.verdict, comparison.problems) == ("mismatch", ())
    (one,) = comparison.discrepancies
    assert len(make_cabling_tickets(comparison)) == 1
    assert comparison.matching == len(fabric.plan.cables) - len([pair for pair in one.cables if pair.expected])
    return one


def expected(one):
    return {frozenset(end.port_id for end in pair.expected.ends) for pair in one.cables if pair.expected}


def ports(*cables):
    return {frozenset(end.port_id for end in cable.ends) for cable in cables}


def node(fabric, name):
    return [fabric.cable(f"{name} mlx5_{rail}") for rail in range(8)]


def test_a_fabric_as_designed_matches_in_either_tools_words(fabric):
    comparison = look(fabric)
    assert (comparison.verdict, comparison.matching) == ("match", len(fabric.plan.cables))
    for words in (("iblinkinfo", "-l"), ("ibnetdiscover", "-p")):
        assert compare_cabling(fabric.plan, read_topology(*fabric.ask(*words))).verdict == "match"


def test_an_unplugged_cable_is_missing(fabric):
    cable = fabric.cable("n003 mlx5_2")
    fabric.unplug(cable)
    one = only(fabric)
    fabric.repair(cable)
    assert (one.kind, expected(one), one.nodes) == ("missing", ports(cable), ("n003",))


def test_two_cables_exchanged_inside_a_leaf_are_a_swap(fabric):
    cables = fabric.cable("n004 mlx5_1"), fabric.cable("n005 mlx5_1")
    fabric.permute(*cables)
    one = only(fabric)
    fabric.repair(*cables)
    assert (one.kind, expected(one), one.nodes) == ("swap", ports(*cables), ("n004", "n005"))
    assert one.corrections[0].startswith("exchange the plugs at leaf-0-1 port 3/1")


def test_two_cables_exchanged_across_leaves_are_a_swap(fabric):
    cables = fabric.cable("n006 mlx5_0"), fabric.cable("n006 mlx5_7")
    fabric.permute(*cables)
    one = only(fabric)
    fabric.repair(*cables)
    assert (one.kind, expected(one)) == ("swap", ports(*cables))
    assert one.likelier_reason == "all of these plugs are at n006"


def test_two_cables_exchanged_between_leaves_and_spines_are_a_swap(fabric):
    cables = fabric.cable("leaf-0-0", 33), fabric.cable("leaf-0-1", 64)
    fabric.permute(*cables)
    one = only(fabric)
    fabric.repair(*cables)
    assert (one.kind, expected(one), one.nodes) == ("swap", ports(*cables), ())


def test_three_cables_in_a_round_are_one_swap(fabric):
    cables = [fabric.cable(f"n00{number} mlx5_3") for number in (1, 2, 7)]
    fabric.permute(*cables)
    one = only(fabric)
    fabric.repair(*cables)
    assert (one.kind, expected(one)) == ("swap", ports(*cables))
    assert one.summary.startswith("3 cables are exchanged")


def test_a_plug_in_a_spare_port_is_moved(fabric):
    cable = fabric.cable("n008 mlx5_5")
    leaf = fabric.names["leaf-0-0"]
    spare = fabric.cable("leaf-0-0", 40)
    fabric.unplug(cable, spare)
    fabric.plug((cable.a, leaf.end(40)))
    one = only(fabric)
    fabric.repair(spare, cable)
    assert (one.kind, expected(one)) == ("moved", ports(cable, spare))


def test_a_node_that_is_removed_is_one_missing_device(fabric):
    cables = node(fabric, "n009")
    fabric.unplug(*cables)
    one = only(fabric)
    fabric.repair(*cables)
    assert (one.kind, one.device, expected(one)) == ("device-missing", "n009", ports(*cables))


def test_a_dead_leaf_is_one_missing_device_and_what_its_nodes_are_left_with(fabric):
    leaf = fabric.names["leaf-0-6"]
    cables = fabric.plan.cables_of_device(leaf.guid)
    fabric.say(f'Unlink "S-{leaf.guid[2:]}"')
    one = only(fabric)
    fabric.say(f'ReLink "S-{leaf.guid[2:]}"')
    assert (one.kind, one.device, expected(one)) == ("device-missing", "leaf-0-6", ports(*cables))
    assert one.capacity_loss == "32 nodes are left with 7 of 8 links"


def test_two_nodes_in_each_others_place_are_one_exchange(fabric):
    one, other = node(fabric, "n010"), node(fabric, "n011")
    fabric.unplug(*one, *other)
    for a, b in zip(one, other, strict=True):
        fabric.plug((a.a, b.b), (b.a, a.b))
    found = only(fabric)
    fabric.repair(*one, *other)
    assert (found.kind, found.device, len(found.cables)) == ("device-exchanged", "n010 and n011", 16)


def switch_port(fabric, cable, *words):
    """Change the switch's port of a cable, which is addressed by LID: OpenSM need not be asked for that."""
    lids = list_lids(fabric.ask("ibnetdiscover")[0])
    fabric.order("ibportstate", lids[cable.b.guid], str(cable.b.port), *words)


@pytest.mark.parametrize(
    ("forced", "freed", "rate"),
    [(("width", "1"), ("width", "3"), "1xHDR"), (("espeed", "2"), ("espeed", "7"), "4xEDR")],
    ids=["width", "speed"],
)
def test_a_link_that_is_forced_down_is_degraded(fabric, forced, freed, rate):
    cable = fabric.cable("n012 mlx5_4")
    with fabric.unmanaged():
        switch_port(fabric, cable, *forced)
        one = only(fabric)
        switch_port(fabric, cable, *freed)
    assert (one.kind, expected(one), one.cables[0].observed.rate) == ("degraded", ports(cable), rate)


def test_a_port_that_somebody_disabled_is_told_by_iblinkinfo(fabric):
    cable = fabric.cable("n013 mlx5_0")
    known = read_port_guids(fabric.ask("ibnetdiscover")[0])
    switch_port(fabric, cable, "disable")
    comparison = compare_cabling(fabric.plan, resolve_port_guids(read_topology(*fabric.ask("iblinkinfo", "-l")), known))
    switch_port(fabric, cable, "enable")
    fabric.repair(cable)
    (one,) = comparison.discrepancies
    assert (comparison.verdict, one.kind, expected(one)) == ("mismatch", "disabled", ports(cable))
    assert f"{cable.b} is disabled" in one.summary


def test_a_scan_tells_a_disabled_port_from_a_missing_cable(fabric):
    """By ibnetdiscover and iblinkinfo of one moment, as a scan keeps them."""
    cable, gone = fabric.cable("n013 mlx5_1"), fabric.cable("n017 mlx5_1")
    switch_port(fabric, cable, "disable")
    fabric.unplug(gone)
    said = {name: fabric.ask(*words) for name, words in (("found", ["ibnetdiscover"]), ("links", ["iblinkinfo", "-l"]))}
    switch_port(fabric, cable, "enable")
    fabric.repair(cable, gone)
    read = {name: {"text": value(out), "stderr": value(err)} for name, (out, err) in said.items()}
    evidence = EvidenceDocument(
        "fabric", datetime.now(UTC), {"discovery": read["found"], "ports": {"links": read["links"]}}
    )
    scanned = add_port_states(read_topology(*said["found"]), evidence)
    comparison = compare_cabling(fabric.plan, scanned)
    assert {(one.kind, frozenset(expected(one))) for one in comparison.discrepancies} == {
        ("disabled", frozenset(ports(cable))), ("missing", frozenset(ports(gone))),
    }  # fmt: skip


def test_counters_are_no_matter_of_cabling(fabric):
    end = fabric.cable("n014 mlx5_6").b
    fabric.say(f'PerformanceSet "S-{end.guid[2:]}"[{end.port}] PortCounters.SymbolErrorCounter=65535')
    assert look(fabric).verdict == "match"
    facts = read_tool_output(*fabric.ask("ibqueryerrors")).facts[PortId(end.guid, end.port)]
    fabric.say(f'PerformanceSet "S-{end.guid[2:]}"[{end.port}] PortCounters.SymbolErrorCounter=0')
    assert facts.counters["SymbolErrorCounter"] == 65535


def test_a_replaced_adapter_is_one_replaced_device(fabric):
    cable = fabric.cable("n015 mlx5_2")
    old, new = cable.a.guid, f"0xe{cable.a.guid[3:]}"
    tag = f'"H-{old[2:]}"'
    fabric.say(f"Guid {tag} {new}", f"Guid {tag}[1] {int(new, 16) + 1:#x}")
    one = only(fabric)
    fabric.say(f"Guid {tag} {old}", f"Guid {tag}[1] {int(old, 16) + 1:#x}")
    assert (one.kind, one.device, expected(one)) == ("device-replaced", "n015 mlx5_2", ports(cable))
    assert new in one.summary


def test_lost_packets_make_it_partial_and_nothing_is_said_of_what_is_not_there(fabric):
    guid = fabric.cable("n016 mlx5_0").a.guid
    fabric.say(f'Error "H-{guid[2:]}"[1] 100')
    comparison = look(fabric)
    fabric.say(f'Error "H-{guid[2:]}"[1] 0')
    assert (comparison.verdict, comparison.discrepancies, make_cabling_tickets(comparison)) == ("partial", (), [])
    assert any("Connection timed out" in problem for problem in comparison.problems)


def test_everything_at_once_is_told_apart(fabric):
    gone, leaf = node(fabric, "n020"), fabric.names["leaf-0-5"]
    swapped = fabric.cable("n021 mlx5_0"), fabric.cable("n022 mlx5_0")
    lost = fabric.cable("leaf-0-2", 50)
    fabric.unplug(*gone, lost)
    fabric.permute(*swapped)
    fabric.say(f'Unlink "S-{leaf.guid[2:]}"')
    found = look(fabric).discrepancies
    fabric.say(f'ReLink "S-{leaf.guid[2:]}"')
    fabric.repair(*gone, lost, *swapped)
    named = sorted((one.kind, one.device) for one in found)
    assert named == [("device-missing", "leaf-0-5"), ("device-missing", "n020"), ("missing", ""), ("swap", "")]
