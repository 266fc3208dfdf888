"""Two matchings fall into alternating paths and cycles, each cable in exactly one."""

from itertools import pairwise

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from assay.fabric.compare.port_diff import find_alternating_walks
from assay.model.specs.fabric.cable import PortId

PORTS = [PortId(f"0x{number:016x}", 1) for number in range(14)]


@st.composite
def matchings(draw):
    order = draw(st.permutations(PORTS))
    count = draw(st.integers(0, len(PORTS) // 2))
    return [(order[2 * i], order[2 * i + 1]) for i in range(count)]


def map_peer_ports(pairs):
    return {port: peer for a, b in pairs for port, peer in ((a, b), (b, a))}


def cables(peers):
    return {frozenset((a, b)) for a, b in peers.items()}


@given(matchings(), matchings())
def test_every_differing_cable_is_in_exactly_one_component(expected, actual):
    one, other = map_peer_ports(expected), map_peer_ports(actual)
    steps = [step for component in find_alternating_walks(one, other) for step in component.steps]
    assert sorted(sorted(s[1:]) for s in steps if s[0]) == sorted(sorted(c) for c in cables(one) - cables(other))
    assert sorted(sorted(s[1:]) for s in steps if not s[0]) == sorted(sorted(c) for c in cables(other) - cables(one))


@given(matchings(), matchings())
def test_the_components_are_those_of_the_graph(expected, actual):
    one, other = map_peer_ports(expected), map_peer_ports(actual)
    graph = nx.Graph([tuple(cable) for cable in cables(one) ^ cables(other)])
    found = [frozenset(component.ports) for component in find_alternating_walks(one, other)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, nx.connected_components(graph)))


@given(matchings(), matchings())
def test_a_cycle_has_as_many_expected_as_actual_cables_and_begins_with_an_expected_one(expected, actual):
    for component in find_alternating_walks(map_peer_ports(expected), map_peer_ports(actual)):
        kinds = [is_expected for is_expected, *_ in component.steps]
        assert all(kind != following for kind, following in pairwise(kinds))
        if component.is_cycle:
            assert kinds.count(True) == kinds.count(False)
            assert kinds[0]


def test_a_port_looped_to_itself_is_a_component_of_its_own():
    a, b, *_ = PORTS
    (component,) = find_alternating_walks({}, map_peer_ports([(a, a)]))
    assert component.ports == (a, a)
    assert not component.is_cycle
    assert [c.ports for c in find_alternating_walks(map_peer_ports([(a, b)]), map_peer_ports([(a, a)]))] == [(b, a, a)]
