"""Racks that are one machine: which of them lack too many nodes, so that the others are cordoned until it is whole."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from assay.lifecycle.decisions.blast_radius_limits import is_in_service, is_out_of_service
from assay.lifecycle.decisions.proposals import Proposal
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.decision import DecisionCause
from assay.model.node import Node
from assay.model.specs.lifecycle_policy import RACK_RULE_PREFIX, LifecyclePolicy
from assay.model.specs.policy_sections import RackRule

RackPlace = tuple[str, str]
"""Site and rack."""


@dataclass(frozen=True, slots=True)
class ShortRack:
    """A rack with too many nodes out, by which rule. `full` says which limit keeps it as it is, "" for none."""

    rack: RackPlace
    rule: str
    reason: str
    limit_reason: str = ""


def rack_place(node: Node) -> RackPlace:
    """Return where a node stands."""
    return (node.site, node.rack)


def find_rack_companions(policy: LifecyclePolicy, nodes: Iterable[Node], stirred: Iterable[Node]) -> set[str]:
    """Return the names of all nodes that share a rack which is one machine with one of these."""
    rules = _map_rules_by_spec(policy)
    racks = {rack_place(node) for node in stirred if node.spec in rules} if rules else set()
    return {node.name for node in nodes if rack_place(node) in racks} if racks else set()


def find_short_racks(situation: FleetSnapshot) -> dict[RackPlace, ShortRack]:
    """Return the racks that lack too many nodes. Those that are cordoned already stay so where few may be."""
    rules = _map_rules_by_spec(situation.policy)
    racks: dict[tuple[RackPlace, str], list[NodeSnapshot]] = defaultdict(list)
    for view in situation.nodes if rules else ():
        if name := rules.get(view.node.spec):
            racks[rack_place(view.node), name].append(view)
    found = list(_find_candidates(situation.policy, racks))
    return dict(_apply_rack_limits(situation.policy, found))


def propose_rack_cordon(policy: LifecyclePolicy, view: NodeSnapshot, short: ShortRack | None) -> Iterator[Proposal]:
    """Yield the wish that a serving node waits, cordoned, until its rack is whole."""
    if short is None or view.node_state.pending or not is_in_service(policy, view.node_state):
        return
    because = (DecisionCause("rack", "/".join([short.rack[0], f"rack-{short.rack[1]}"]), short.reason),)
    name = f"{RACK_RULE_PREFIX}{short.rule}"
    yield Proposal(
        view.node_state.state, "pending", name, name, because, remedy="cordon", takes_out=True, blockers=(short.reason,)
    )


def _map_rules_by_spec(policy: LifecyclePolicy) -> dict[str, str]:
    """Return by the spec of its nodes which rule a rack that is one machine stands under: the first that names it."""
    return {spec: name for name, rule in reversed(policy.racks.items()) for spec in rule.node_specs}


ShortRackCandidate = tuple[RackPlace, str, list[NodeSnapshot], list[NodeSnapshot]]
"""A rack, its rule, its nodes, and those of them that are out."""


def _find_candidates(
    policy: LifecyclePolicy, racks: Mapping[tuple[RackPlace, str], list[NodeSnapshot]]
) -> Iterator[ShortRackCandidate]:
    for (rack, name), views in sorted(racks.items()):
        out = sorted((view for view in views if _is_missing(policy, view)), key=lambda view: view.name)
        if len(out) > policy.racks[name].more_than:
            yield rack, name, views, out


def _apply_rack_limits(
    policy: LifecyclePolicy, found: list[ShortRackCandidate]
) -> Iterator[tuple[RackPlace, ShortRack]]:
    """Yield every short rack. One that is cordoned stays so; of the others a pool has only so many at once."""
    taken = {one[0]: _lacks_lost_ones(policy, one) for one in found}
    cordoned = Counter(_limit_key(one) for one in found if taken[one[0]] and _find_waiting_nodes(one))
    for one in found:
        rack, name, _, out = one
        rule, key, waits = policy.racks[name], _limit_key(one), _find_waiting_nodes(one)
        others = cordoned[key] - bool(waits)
        full = taken[rack] and not _is_cordoned(one) and others >= rule.at_once
        cordoned[key] += taken[rack] and not full and not waits
        limit = f"held back: {rule.at_once} racks of pool {key[1]} are cordoned already, {rule.at_once} may be"
        yield rack, ShortRack(rack, name, _describe_shortage(rule, rack, out), limit if full else "")


def _limit_key(found: ShortRackCandidate) -> tuple[str, str]:
    """Return the rule and the pool that a rack is counted under."""
    _, name, views, _ = found
    return name, min(view.node.pool for view in views)


def _lacks_lost_ones(policy: LifecyclePolicy, found: ShortRackCandidate) -> bool:
    """Whether the rack is short by nodes that served, so that it takes room; bringing racks up takes none."""
    _, name, _, out = found
    return sum(1 for view in out if _is_lost(policy, view)) > policy.racks[name].more_than


def _find_waiting_nodes(found: ShortRackCandidate) -> list[NodeSnapshot]:
    """Return the nodes that wait, cordoned, for their rack to be whole."""
    _, name, views, _ = found
    waits = ((view, view.node_state.pending) for view in views)
    return [
        view for view, pending in waits if pending and pending.rule.rpartition(" ")[2] == f"{RACK_RULE_PREFIX}{name}"
    ]


def _is_cordoned(found: ShortRackCandidate) -> bool:
    """Whether the rack is cordoned. A held node keeps the cordon of a time that may be long over: it shows nothing."""
    return any(view.node_state.hold is None for view in _find_waiting_nodes(found))


def _is_missing(policy: LifecyclePolicy, view: NodeSnapshot) -> bool:
    """Whether the rack has to do without a node: it does not serve, is on its way out, or is broken."""
    return not is_in_service(policy, view.node_state) or _is_lost(policy, view)


def _is_lost(policy: LifecyclePolicy, view: NodeSnapshot) -> bool:
    """Whether a node served and is out or broken. One that has yet to come is missing, and not lost."""
    story = view.node_state
    if is_out_of_service(policy, story) or not (is_in_service(policy, story) and view.profile.acts_on_faults):
        return is_out_of_service(policy, story)
    worst = (known for known in story.faults if known.is_open and known.severity == "catastrophic")
    return any(known.response != "breaker" and known.last_seen > story.repaired_at for known in worst)


def _describe_shortage(rule: RackRule, rack: RackPlace, out: list[NodeSnapshot]) -> str:
    names = ", ".join(f"{view.name} ({view.node_state.state})" for view in out)
    return f"rack {rack[1]} lacks {len(out)} of {rule.of} nodes, {rule.more_than} may be out: {names}"
