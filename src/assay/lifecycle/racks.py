"""Racks that are one machine: which of them lack too many nodes, so that the others are cordoned until it is whole."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from assay.lifecycle.limits import is_out, serves
from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.verdicts import Wish
from assay.model.decision import Cause
from assay.model.fleet import Node
from assay.model.policy import OF_RACK, LifecyclePolicy, RackRule

Rack = tuple[str, str]
"""Site and rack."""


@dataclass(frozen=True, slots=True)
class Short:
    """A rack with too many nodes out, by which rule. `full` says which limit keeps it as it is, "" for none."""

    rack: Rack
    rule: str
    said: str
    full: str = ""


def rack_of(node: Node) -> Rack:
    """Return where a node stands."""
    return (node.site, node.rack)


def companions(policy: LifecyclePolicy, nodes: Iterable[Node], stirred: Iterable[Node]) -> set[str]:
    """Return the names of all nodes that share a rack which is one machine with one of these."""
    rules = _rules(policy)
    racks = {rack_of(node) for node in stirred if node.spec in rules} if rules else set()
    return {node.name for node in nodes if rack_of(node) in racks} if racks else set()


def short_racks(situation: Situation) -> dict[Rack, Short]:
    """Return the racks that lack too many nodes. Those that are cordoned already stay so where few may be."""
    rules = _rules(situation.policy)
    racks: dict[tuple[Rack, str], list[NodeView]] = defaultdict(list)
    for view in situation.nodes if rules else ():
        if name := rules.get(view.node.spec):
            racks[rack_of(view.node), name].append(view)
    found = list(_short(situation.policy, racks))
    return dict(_within_limits(situation.policy, found))


def cordoned_with_its_rack(policy: LifecyclePolicy, view: NodeView, short: Short | None) -> Iterator[Wish]:
    """Yield the wish that a serving node waits, cordoned, until its rack is whole."""
    if short is None or view.story.pending or not serves(policy, view.story):
        return
    because = (Cause("rack", "/".join([short.rack[0], f"rack-{short.rack[1]}"]), short.said),)
    name = f"{OF_RACK}{short.rule}"
    yield Wish(
        view.story.state, "pending", name, name, because, remedy="cordon", takes_out=True, blockers=(short.said,)
    )


def _rules(policy: LifecyclePolicy) -> dict[str, str]:
    """Return by the spec of its nodes which rule a rack that is one machine stands under: the first that names it."""
    return {spec: name for name, rule in reversed(policy.racks.items()) for spec in rule.node_specs}


Found = tuple[Rack, str, list[NodeView], list[NodeView]]
"""A rack, its rule, its nodes, and those of them that are out."""


def _short(policy: LifecyclePolicy, racks: Mapping[tuple[Rack, str], list[NodeView]]) -> Iterator[Found]:
    for (rack, name), views in sorted(racks.items()):
        out = sorted((view for view in views if _lost(policy, view)), key=lambda view: view.name)
        if len(out) > policy.racks[name].more_than:
            yield rack, name, views, out


def _within_limits(policy: LifecyclePolicy, found: list[Found]) -> Iterator[tuple[Rack, Short]]:
    """Yield every short rack. One that is cordoned stays so; of the others a pool has only so many at once."""
    taken = {one[0]: _lacks_lost_ones(policy, one) for one in found}
    cordoned = Counter(_counted_as(one) for one in found if taken[one[0]] and _waiting(one))
    for one in found:
        rack, name, _, out = one
        rule, key, waits = policy.racks[name], _counted_as(one), _waiting(one)
        others = cordoned[key] - bool(waits)
        full = taken[rack] and not _is_cordoned(one) and others >= rule.at_once
        cordoned[key] += taken[rack] and not full and not waits
        limit = f"held back: {rule.at_once} racks of pool {key[1]} are cordoned already, {rule.at_once} may be"
        yield rack, Short(rack, name, _said(rule, rack, out), limit if full else "")


def _counted_as(found: Found) -> tuple[str, str]:
    """Return the rule and the pool that a rack is counted under."""
    _, name, views, _ = found
    return name, min(view.node.pool for view in views)


def _lacks_lost_ones(policy: LifecyclePolicy, found: Found) -> bool:
    """Whether the rack is short by nodes that served, so that it takes room; bringing racks up takes none."""
    _, name, _, out = found
    return sum(1 for view in out if _was_lost(policy, view)) > policy.racks[name].more_than


def _waiting(found: Found) -> list[NodeView]:
    """Return the nodes that wait, cordoned, for their rack to be whole."""
    _, name, views, _ = found
    waits = ((view, view.story.pending) for view in views)
    return [view for view, pending in waits if pending and pending.rule.rpartition(" ")[2] == f"{OF_RACK}{name}"]


def _is_cordoned(found: Found) -> bool:
    """Whether the rack is cordoned. A held node keeps the cordon of a time that may be long over: it shows nothing."""
    return any(view.story.held is None for view in _waiting(found))


def _lost(policy: LifecyclePolicy, view: NodeView) -> bool:
    """Whether the rack has to do without a node: it does not serve, is on its way out, or is broken."""
    return not serves(policy, view.story) or _was_lost(policy, view)


def _was_lost(policy: LifecyclePolicy, view: NodeView) -> bool:
    """Whether a node served and is out or broken. One that has yet to come is missing, and not lost."""
    story = view.story
    if is_out(policy, story) or not (serves(policy, story) and view.profile.acts_on_faults):
        return is_out(policy, story)
    worst = (known for known in story.faults if known.open and known.severity == "catastrophic")
    return any(known.answer != "breaker" and known.last_seen > story.repaired_at for known in worst)


def _said(rule: RackRule, rack: Rack, out: list[NodeView]) -> str:
    names = ", ".join(f"{view.name} ({view.story.state})" for view in out)
    return f"rack {rack[1]} lacks {len(out)} of {rule.of} nodes, {rule.more_than} may be out: {names}"
