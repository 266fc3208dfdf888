"""Finds the limits that the change itself would break, which refuses the merge, and ranks the risks, which do not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from assay.decide.moves.circuit_breaker import is_wave
from assay.decide.plan.cable_moves import CablingJob, nodes_losing_links
from assay.decide.plan.drift_response import DriftResponse
from assay.decide.plan.inputs import FleetFacts, FleetRevision, NodeStanding, find_spec_line
from assay.decide.plan.inventory_changes import InventoryChanges
from assay.decide.plan.other_spec_changes import OtherChange
from assay.decide.rollouts.rollout_waves import rack_key
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.fabric.design_parts import expand_node_names, format_node_list
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.policy_sections import count_allowed_out
from assay.model.text.lists import format_count, format_nodes


def find_missing_gaps(
    before: FleetRevision, after: FleetRevision, new_names: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield design, `file:line` and reason of each design whose nodes move up into places of removed nodes.

    `new_names` are those of renamed machines, by their old names. A design whose nodes are in another order is meant
    to be cabled otherwise, and is left alone.
    """
    was, will = before.fleet.designs, after.fleet.designs
    for name in sorted(was.keys() & will.keys()):
        old, new = was[name], will[name]
        if old is new or (old.nodes, old.gaps) == (new.nodes, new.gaps) or not old.fat_tree:
            continue
        if moved := _compare_places(old, new, new_names):
            yield name, find_spec_line(after.fleet, f"FabricDesign/{name}", "nodes"), moved


def _compare_places(old: FabricDesign, new: FabricDesign, new_names: Mapping[str, str]) -> str:
    """Return what shifts, and the lines that keep it in place; "" if nothing does."""
    was = [new_names.get(name, name) for name in old.node_places]
    places = {name: number for number, name in enumerate(new.node_places) if name}
    removed = [name for name in was if name and name not in places]
    kept = [name for name in was if name in places]
    moved = [name for number, name in enumerate(was) if name in places and places[name] != number]
    if not removed or not moved or kept != sorted(kept, key=places.__getitem__):
        return ""
    every = [new_names.get(name, name) for entry in old.nodes for name in expand_node_names(entry)]  # gaps too
    nodes = format_node_list(dict.fromkeys([*every, *filter(None, new.node_places)]))
    gaps = format_node_list(filter({*removed, *old.gap_names}.__contains__, every))
    shift = f"removing {format_nodes(removed)} would move the cables of {format_nodes(moved)} to other leaf ports"
    return f"{shift}; to keep their cables, write:\n  nodes: {nodes}\n  gaps: {gaps}"


K = TypeVar("K", str, tuple[str, str])


@frozen
class PlanRefusal:
    """The limit by its path in the policy, its file and line, and why it would be broken."""

    limit: str
    """The limit, by its path in the policy."""
    where: str
    """Its file and line."""
    why: str
    """Why it would be broken."""


@dataclass(frozen=True)
class RefusalCase:
    """The input for finding refusals. `standings` hold the nodes of either revision."""

    before: FleetRevision
    after: FleetRevision
    facts: FleetFacts
    nodes: InventoryChanges
    cables: tuple[CablingJob, ...]
    standings: Mapping[str, NodeStanding]
    following: tuple[DriftResponse, ...]

    def make_refusal(self, limit: str, reason: str) -> PlanRefusal:
        """Return a refusal for a limit of the policy."""
        return PlanRefusal(limit, self.after.policy_line(limit), reason)

    def select_serving(self, names: Iterable[str]) -> list[Node]:
        """Return the nodes that customers use and that were not out before."""
        known = self.before.fleet.nodes
        return [
            known[name]
            for name in names
            if name in known and self.standings[name].is_in_service and not self.standings[name].is_out
        ]

    def select_out(self, declared: FleetRevision) -> list[Node]:
        """Return the nodes of a revision that are out already."""
        return [node for name, node in declared.fleet.nodes.items() if self.standings[name].is_out]

    def select_meant_to_serve(self, declared: FleetRevision) -> list[Node]:
        """Return the nodes of a revision that make up the size of their pools."""
        return [node for name, node in declared.fleet.nodes.items() if self.standings[name].is_meant_to_serve]

    def find_overruns(self, gone: list[Node], fate: str, racks: list[Node] | None = None) -> Iterator[PlanRefusal]:
        """Yield the pools and racks that lose more nodes at once than their limits allow."""
        yield from self.find_pool_overruns(gone, fate)
        yield from self._find_rack_overruns(gone if racks is None else racks, fate)

    def find_pool_overruns(self, gone: list[Node], fate: str) -> Iterator[PlanRefusal]:
        """Yield the pools that lose more nodes at once than the limit of nodes out allows."""
        sizes = Counter(node.pool for node in self.select_meant_to_serve(self.before))
        out = Counter(node.pool for node in self.select_out(self.before))
        for pool, names in _group_names(gone, lambda node: node.pool):
            allowed = count_allowed_out(sizes[pool], self.after.policy.limits.pool_percent)
            if out[pool] + len(names) > allowed:
                named = format_nodes(names)
                reason = f"pool {pool}: {named} {fate}; {_format_allowance(allowed, sizes[pool], out[pool])}"
                yield self.make_refusal("limits.pool_percent", reason)

    def _find_rack_overruns(self, gone: list[Node], fate: str) -> Iterator[PlanRefusal]:
        sizes = Counter(rack_key(node) for node in self.before.fleet.nodes.values())
        out = Counter(rack_key(node) for node in self.select_out(self.before))
        allowed = self.after.policy.limits.rack_concurrent
        for rack, names in _group_names(gone, rack_key):
            if out[rack] + len(names) > allowed:
                named = format_nodes(names)
                reason = f"rack {rack[1]}: {named} {fate}; {_format_allowance(allowed, sizes[rack], out[rack])}"
                yield self.make_refusal("limits.rack_concurrent", reason)


def _group_names(some: Iterable[Node], key: Callable[[Node], K]) -> list[tuple[K, list[str]]]:
    """Return the names of nodes by a shared value, in the order of these values."""
    groups: dict[K, list[str]] = {}
    for node in some:
        groups.setdefault(key(node), []).append(node.name)
    return sorted(groups.items())


def _format_allowance(allowed: int, size: int, out: int) -> str:
    already = f", {out} are out already" if out else ""
    return f"{allowed} of {size} may be out{already}"


def find_refusals(case: RefusalCase) -> tuple[PlanRefusal, ...]:
    """Return every limit that the change would break."""
    return tuple(refusal for finder in REFUSAL_FINDERS for refusal in finder(case))


def find_removed_nodes(case: RefusalCase) -> Iterator[PlanRefusal]:
    """Find nodes in service that the merge removes from the inventory: automation would stop managing all at once."""
    removed = case.select_serving(node.name for node in case.nodes.removed)
    repooled = case.select_serving(
        name for change in case.nodes.changed if change.what == "pool" for name in change.nodes
    )
    fate = "in service would be removed or put into another pool" if repooled else "in service would be removed"
    yield from case.find_overruns([*removed, *repooled], fate, racks=removed)


def find_lowered_limits(case: RefusalCase) -> Iterator[PlanRefusal]:
    """Find limits that are lowered below the number of nodes out now. Removed nodes do not count."""
    old, new = case.before.policy.limits, case.after.policy.limits
    sizes, left = (
        Counter(node.pool for node in case.select_meant_to_serve(revision)) for revision in (case.before, case.after)
    )
    for pool, out in sorted(Counter(node.pool for node in case.select_out(case.after)).items()):
        allowed = count_allowed_out(left[pool], new.pool_percent)
        if out > allowed < count_allowed_out(sizes[pool], old.pool_percent):
            reason = f"pool {pool}: {format_count(out, 'node')} out at present, {allowed} of {left[pool]} could be"
            yield case.make_refusal("limits.pool_percent", reason)
    for rack, out in sorted(Counter(map(rack_key, case.select_out(case.after))).items()):
        if out > new.rack_concurrent < old.rack_concurrent:
            reason = f"rack {rack[1]}: {format_count(out, 'node')} out at present, {new.rack_concurrent} could be"
            yield case.make_refusal("limits.rack_concurrent", reason)


def find_mass_actions(case: RefusalCase) -> Iterator[PlanRefusal]:
    """Find pools from which the changed specs would take more nodes at the next pass than the limits allow."""
    names = {name for response in case.following if response.what == "moves" for name in response.nodes}
    differences = case.facts.backtest.found if case.facts.backtest else ()
    names |= {difference.node for difference in differences if difference.acts and difference.still}
    acted = case.select_serving(sorted(names))
    fate = "would be acted on at the next look"
    limited = list(case.find_pool_overruns(acted, fate))
    yield from limited or _find_breaker_trips(case, acted, fate)


def _find_breaker_trips(case: RefusalCase, acted: list[Node], fate: str) -> Iterator[PlanRefusal]:
    breaker = case.after.policy.breaker
    served = Counter(node.pool for node in case.select_serving(case.before.fleet.nodes))
    for pool, names in _group_names(acted, lambda node: node.pool):
        if is_wave(breaker, len(names), served[pool]):
            reason = (
                f"pool {pool}: {format_nodes(names)} {fate}; {breaker.percent:g} % of {served[pool]} open the breaker"
            )
            yield case.make_refusal("breaker.percent", reason)


def find_unplugged_nodes(case: RefusalCase) -> Iterator[PlanRefusal]:
    """Find nodes in service that lose links during cable work: too many of a pool or a rack for one merge."""
    losing = nodes_losing_links(job for job in case.cables if job.what != "lay")
    removed = {node.name for node in case.nodes.removed}
    yield from case.find_overruns(case.select_serving(sorted(losing - removed)), "in service would lose links")


def find_missing_states(case: RefusalCase) -> Iterator[PlanRefusal]:
    """Find nodes in a state that the policy no longer has: assay could then decide about no node."""
    states: dict[str, list[str]] = {}
    for name in case.after.fleet.nodes:
        if (state := case.standings[name].state) not in case.after.policy.states:
            states.setdefault(state, []).append(name)
    for state, names in states.items():
        yield case.make_refusal(
            "states", f"{format_nodes(names)} in state {state}, which the policy would no longer have"
        )


def find_shifted_cables(case: RefusalCase) -> Iterator[PlanRefusal]:
    """Find removed nodes without a gap in their fabric design: every later node would be cabled otherwise."""
    new_names = {old.name: new.name for old, new in case.nodes.renamed}
    for design, line, reason in find_missing_gaps(case.before, case.after, new_names):
        yield PlanRefusal(f"gaps of {design}", line, reason)


def find_false_history(case: RefusalCase) -> Iterator[PlanRefusal]:
    """Find what the stored history speaks against, beyond the bound of the policy: then a person must raise it."""
    if case.facts.history:
        for name, reason in case.facts.history.find_excess(case.after.policy.rollouts.history):
            yield case.make_refusal(f"rollouts.history.{name}", reason)


REFUSAL_FINDERS: tuple[Callable[[RefusalCase], Iterator[PlanRefusal]], ...] = (
    find_shifted_cables,
    find_removed_nodes,
    find_lowered_limits,
    find_mass_actions,
    find_false_history,
    find_unplugged_nodes,
    find_missing_states,
)


SCHEDULER_SETTINGS = ("workloads", "slurm_conf", "kubernetes")
TITLES = {
    "known issue": "failures are excused",
    "check": "a check decides less",
    "gate": "a looser gate",
    "signer": "a new signer",
    "playbook": "a playbook does something else",
}
"""Topics of changes that are risks where they weaken something, the worst first."""


@frozen
class PlanRisk:
    """A risk in a few words, its `file:line`, and why it is one."""

    risk: str
    """The risk in a few words."""
    where: str
    """Its file and line."""
    why: str
    """Why it is one."""


def rank_risks(
    before: FleetRevision,
    after: FleetRevision,
    nodes: InventoryChanges,
    standings: Mapping[str, NodeStanding],
    other: Iterable[OtherChange],
) -> tuple[PlanRisk, ...]:
    """Return the risks, the worst first."""
    weaker = [change for change in other if change.weakens]
    return (
        *(PlanRisk("the base cannot be read", where, reason) for where, reason in before.unread),
        *_find_replaced_switches(before, after),
        *_find_moves_between_schedulers(after, nodes, standings),
        *_find_unsigned_commits(before, after),
        *_find_excused_admission(before, after),
        *(PlanRisk("switched on", line, text) for text, line in list_switched_on(before, after)),
        *(
            PlanRisk(title, change.line, change.what)
            for topic, title in TITLES.items()
            for change in weaker
            if change.topic == topic
        ),
    )


def _find_replaced_switches(before: FleetRevision, after: FleetRevision) -> Iterator[PlanRisk]:
    """Yield each tier of a fabric that gets more than one other switch at once."""
    was, will = before.fleet.designs, after.fleet.designs
    for name in sorted(was.keys() & will.keys()):
        if was[name] is will[name]:
            continue
        there, here = _group_switches(was[name]), _group_switches(will[name])
        left = set().union(*here.values())
        for tier, guids in there.items():
            gone = len(guids - left)
            if gone > 1:
                many = f"all {gone}" if gone == len(guids) else f"{gone} of {len(guids)}"
                rest = (
                    "none of them carries traffic meanwhile"
                    if gone == len(guids)
                    else "the rest carries its traffic meanwhile"
                )
                line = find_spec_line(after.fleet, f"FabricDesign/{name}", f"{tier}.at")
                yield PlanRisk("many switches at once", line, f"{many} {tier} of {name} are replaced: {rest}")


def _group_switches(design: FabricDesign) -> dict[str, set[str]]:
    groups: dict[str, set[str]] = {}
    for tier, _, switch in design.list_switch_places():
        groups.setdefault(tier, set()).add(switch.guid)
    if listed := {device.guid for device in design.devices if device.kind == "switch"}:
        groups["devices"] = listed
    return groups


def _find_moves_between_schedulers(
    after: FleetRevision, nodes: InventoryChanges, standings: Mapping[str, NodeStanding]
) -> Iterator[PlanRisk]:
    """Yield the serving nodes that another scheduler gets, with the jobs of the present one on them."""
    moved: dict[tuple[str, str, str], list[Node]] = {}
    for old, new in nodes.kept:
        if old.settings is new.settings or not standings[new.name].is_in_service:
            continue
        if old.settings.workloads == "none":
            continue
        changed = [name for name in SCHEDULER_SETTINGS if getattr(old.settings, name) != getattr(new.settings, name)]
        if changed:
            moved.setdefault((changed[0], _scheduler(old), _scheduler(new)), []).append(new)
    for (field, was, will), some in moved.items():
        names = format_nodes([node.name for node in some])
        host = after.hosts.get(some[0].name)
        where = ":".join(map(str, host.find_position(field)[:2])) if host else "inventory"
        end = f"from {was} to {will}" if was != will else f"to another {will} ({field})"
        reason = f"{names} in service would move {end}: the jobs there are no longer seen; drain them first"
        yield PlanRisk("a serving node changes its scheduler", where, reason)


def _scheduler(node: Node) -> str:
    return node.settings.workloads


def _find_unsigned_commits(before: FleetRevision, after: FleetRevision) -> Iterator[PlanRisk]:
    was, will = before.policy.commits, after.policy.commits
    if was and was.signed and not (will and will.signed):
        reason = "from the merge on, assay acts on commits that nobody signed"
        yield PlanRisk("commits need no signature", after.policy_line("commits.signed"), reason)


def _find_excused_admission(before: FleetRevision, after: FleetRevision) -> Iterator[PlanRisk]:
    """Yield the checks that known issues may excuse from the merge on where a node enters service."""
    known = before.policy.excuses.admission
    if new := [pattern for pattern in after.policy.excuses.admission if pattern not in known]:
        reason = f"a known issue may excuse {', '.join(new)} on a node that enters service"
        yield PlanRisk("failures are excused", after.policy_line("excuses.admission"), reason)


EFFECTS: Mapping[str, str] = {
    "ac-cycles": "cuts all power of {nodes} where firmware needs that",
    "boot-order": "writes the boot order of {nodes}",
    "network-starts": "each reboot and power cycle of {nodes} orders a start by network",
    "other-accounts": "disables every other account on the BMCs of {nodes}",
    "wipe": "erases the local drives of {nodes} in states that wipe",
}
"""What each is, in the words of a person whom it reaches."""


def list_switched_on(before: FleetRevision, after: FleetRevision) -> Iterator[tuple[str, str]]:
    """Yield effect and `file:line` of everything that the merge switches on."""
    nodes: dict[tuple[str, str], list[str]] = defaultdict(list)
    was = {name: set(_list_effects(before.fleet, name)) for name in before.fleet.nodes}
    of_new_nodes = set().union(*was.values())  # a node that comes to nodes which have it switches nothing on
    for name, node in after.fleet.nodes.items():
        for effect in set(_list_effects(after.fleet, name)) - was.get(name, of_new_nodes):
            nodes[effect, node.profile].append(name)
    for (effect, profile), names in sorted(nodes.items()):
        line = find_spec_line(after.fleet, f"ManagementProfile/{profile}", "may")
        yield EFFECTS[effect].format(nodes=format_nodes(names)), line
    told_before, will = before.policy.notices, after.policy.notices
    if will.scheduler.shown and not told_before.scheduler.shown:
        line = after.policy_line("notices.scheduler.shown")
        yield "customers are told, on every node that leaves service, what becomes of it", line
    for customer in sorted(will.webhooks.keys() - told_before.webhooks.keys()):
        text = f"messages about their nodes go to the customer {customer}"
        yield text, after.policy_line(f"notices.webhooks.{customer}")


def _list_effects(fleet: Fleet, name: str) -> Iterator[str]:
    """Yield the effects that specs ask for and the profile of a node allows."""
    profile, spec = fleet.profile_of(name), fleet.spec_of(name)
    asked = {
        "ac-cycles": any(part.reset == "ac" for part in fleet.bundle_of(name).components),
        "boot-order": bool(spec.boot.first),
        "network-starts": fleet.provisioning_of(name) is not None,
        "other-accounts": spec.bmc.accounts.complete,
        "wipe": spec.wipe is not None,
    }
    yield from (effect for effect in profile.may if asked[effect])
