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


def rule_of(policy: LifecyclePolicy, node: Node) -> str:
    """Return the name of the rule for whose racks a node is one of the nodes, "" where its rack is no machine."""
    return next((name for name, rule in policy.racks.items() if node.spec in rule.node_specs), "")


def companions(policy: LifecyclePolicy, nodes: Iterable[Node], stirred: Iterable[Node]) -> set[str]:
    """Return the names of all nodes that share a rack which is one machine with one of these."""
    racks = {rack_of(node) for node in stirred if rule_of(policy, node)} if policy.racks else set()
    return {node.name for node in nodes if rack_of(node) in racks} if racks else set()


def short_racks(situation: Situation) -> dict[Rack, Short]:
    """Return the racks that lack too many nodes. Those that are cordoned already go first where few may be."""
    if not situation.policy.racks:
        return {}
    racks: dict[tuple[Rack, str], list[NodeView]] = defaultdict(list)
    for view in situation.nodes:
        if name := rule_of(situation.policy, view.node):
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


Found = tuple[Rack, str, list[NodeView], list[NodeView]]
"""A rack, its rule, its nodes, and those of them that are out."""


def _short(policy: LifecyclePolicy, racks: Mapping[tuple[Rack, str], list[NodeView]]) -> Iterator[Found]:
    for (rack, name), views in sorted(racks.items()):
        out = sorted((view for view in views if _lost(policy, view)), key=lambda view: view.name)
        if len(out) > policy.racks[name].more_than:
            yield rack, name, views, out


def _within_limits(policy: LifecyclePolicy, found: list[Found]) -> Iterator[tuple[Rack, Short]]:
    cordoned: Counter[tuple[str, str]] = Counter()
    for rack, name, views, out in sorted(found, key=lambda one: (not _is_cordoned(one), one[0])):
        rule, key = policy.racks[name], (name, min(view.node.pool for view in views))
        taken = sum(1 for view in out if _was_lost(policy, view)) > rule.more_than
        full = taken and not _is_cordoned((rack, name, views, out)) and cordoned[key] >= rule.at_once
        cordoned[key] += taken and not full
        limit = f"held back: {rule.at_once} racks of pool {key[1]} are cordoned already, {rule.at_once} may be"
        yield rack, Short(rack, name, _said(rule, rack, out), limit if full else "")


def _is_cordoned(found: Found) -> bool:
    _, name, views, _ = found
    waits = (view.story.pending for view in views if view.story.pending)
    return any(pending.rule.rpartition(" ")[2] == f"{OF_RACK}{name}" for pending in waits)


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
