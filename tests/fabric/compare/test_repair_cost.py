"""What a fault costs decides how severe it is and where it stands: bandwidth, and the nodes that lose it."""

from hypothesis import given
from hypothesis import strategies as st

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.compare.repair import SEVERITIES
from assay.fabric.discovery import DiscoveredDevice, FabricDiscovery
from tests.support.fabrics.fat_trees import as_built, edge, fat_tree, in_reach, renamed

UPLINKS = 8


def tree():
    return fat_tree(units=2, nodes=8, rails=4, spines=2, pair=4)


def trunks_of(plan, leaf):
    """The cables of a leaf to the spines."""
    devices = plan.devices
    own = (one for one in as_built(plan) if leaf in {devices[port.guid].name for port in one[:2]})
    return [one for one in own if not any(devices[port.guid].node for port in one[:2])]


def faults_without(plan, lost):
    gone = {edge(cable) for cable in lost}
    devices = {g: DiscoveredDevice(g, d.kind, d.ports, d.description) for g, d in plan.devices.items()}
    cables = [cable for cable in as_built(plan) if edge(cable) not in gone]
    return compare_cabling(plan, FabricDiscovery(cables, devices)).list_faults()


@given(st.integers(1, UPLINKS), st.permutations(range(UPLINKS)))
def test_the_nodes_below_a_leaf_lose_bandwidth_with_half_of_its_uplinks(many, order):
    plan = tree()
    trunks = trunks_of(plan, "leaf-0-5")
    node_cable = next(cable for cable in as_built(plan) if plan.devices[cable.a.guid].node == "n002")
    found = faults_without(plan, [*(trunks[number] for number in order[:many]), node_cable])
    below = [f"n0{node:02}" for node in range(8, 16)] if 2 * many >= UPLINKS else []
    if below:
        assert (found[0].severity, found[0].gbps, found[0].nodes) == ("catastrophic", 400 * many, below)
        assert (found[1].severity, found[1].nodes) == ("degraded", ["n002"])
    assert {node for one in found for node in one.nodes} == {"n002", *below}


def test_a_leaf_without_uplinks_comes_before_a_node_s_cable():
    plan = tree()
    node_cable = next(cable for cable in as_built(plan) if plan.devices[cable.a.guid].node == "n002")
    first, second = faults_without(plan, [*trunks_of(plan, "leaf-0-5"), node_cable])
    assert (first.severity, len(first.nodes), second.nodes) == ("catastrophic", 8, ["n002"])


@given(st.sets(st.integers(0, 127), min_size=1, max_size=40))
def test_the_severest_faults_come_first_and_among_them_the_most_costly(numbers):
    plan = tree()
    cables = as_built(plan)
    seen = in_reach(plan, [cable for number, cable in enumerate(cables) if number not in numbers])
    found = compare_cabling(plan, seen).list_faults()
    ranks = [(SEVERITIES.index(one.severity), -one.gbps, -len(one.nodes)) for one in found]
    assert ranks == sorted(ranks)
    assert sum(one.gbps for one in found) >= 400 * len(numbers)


@given(st.sampled_from(["leaf-0-5", "spine-0-1"]), st.data())
def test_what_is_wrong_at_a_new_device_costs_what_it_costs_at_the_old_one(name, data):
    plan = tree()
    (own,) = [guid for guid, device in plan.devices.items() if device.name == name]
    at_it = [cable for cable in as_built(plan) if own in (cable.a.guid, cable.b.guid)]
    ring = data.draw(st.lists(st.sampled_from(at_it), min_size=2, max_size=4, unique=True))
    slow = data.draw(st.sampled_from([cable for cable in at_it if cable not in ring]))
    deed = dict(
        zip(ring, [cable._replace(b=to.b) for cable, to in zip(ring, [*ring[1:], ring[0]], strict=True)], strict=True)
    )
    cables = [deed.get(cable, cable) for cable in as_built(plan)]
    cables = [cable._replace(rate="1xNDR") if cable == slow else cable for cable in cables]
    new = DiscoveredDevice("0xe000000000000001", "switch", 64, "new")
    assert list_costs(plan, renamed(cables, {own: new.guid}), [new]) == list_costs(plan, cables)


def list_costs(plan, cables, extra=()):
    """What each fault but the new device costs."""
    found = compare_cabling(plan, in_reach(plan, cables, extra))
    faults = found.list_faults()
    kinds = [{found.discrepancies[at].kind for at in fault.members} for fault in faults]
    return [
        (fault.severity, fault.gbps, fault.nodes)
        for fault, kind in zip(faults, kinds, strict=True)
        if kind != {"device-replaced"}
    ]
