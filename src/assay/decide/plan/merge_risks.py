"""Ranks the risks of a merge. No risk refuses the plan, but each is read before everything else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from assay.decide.plan.current_fleet_state import NodeStanding
from assay.decide.plan.fleet_revision import FleetRevision, find_spec_line
from assay.decide.plan.inventory_changes import InventoryChanges
from assay.decide.plan.other_change import OtherChange
from assay.decide.plan.switched_on import list_switched_on
from assay.model.node import Node
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.text.text_lists import format_nodes

SCHEDULER_SETTINGS = ("workloads", "slurm_conf", "kubernetes")
TITLES = {
    "known issue": "failures are excused",
    "check": "a check decides less",
    "gate": "a looser gate",
    "signer": "a new signer",
    "playbook": "a playbook does something else",
}
"""Topics of changes that are risks where they weaken something, the worst first."""


@dataclass(frozen=True, slots=True)
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
    weaker = [one for one in other if one.weakens]
    return (
        *(PlanRisk("the base cannot be read", where, why) for where, why in before.unread),
        *_find_replaced_switches(before, after),
        *_find_moves_between_schedulers(after, nodes, standings),
        *_find_unsigned_commits(before, after),
        *_find_excused_admission(before, after),
        *(PlanRisk("switched on", line, what) for what, line in list_switched_on(before, after)),
        *(
            PlanRisk(title, one.line, one.what)
            for topic, title in TITLES.items()
            for one in weaker
            if one.topic == topic
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
    found: dict[str, set[str]] = {}
    for tier, _, switch in design.list_switch_places():
        found.setdefault(tier, set()).add(switch.guid)
    if listed := {device.guid for device in design.devices if device.kind == "switch"}:
        found["devices"] = listed
    return found


def _find_moves_between_schedulers(
    after: FleetRevision, nodes: InventoryChanges, standings: Mapping[str, NodeStanding]
) -> Iterator[PlanRisk]:
    """Yield the serving nodes that another scheduler gets, with the jobs of the present one on them."""
    moved: dict[tuple[str, str, str], list[Node]] = {}
    for old, new in nodes.kept:
        if old.settings is new.settings or not standings[new.name].is_in_service:
            continue
        field = next((name for name in SCHEDULER_SETTINGS if _differs(old, new, name)), "")
        if field:
            moved.setdefault((field, _scheduler(old), _scheduler(new)), []).append(new)
    for (field, was, will), some in moved.items():
        names = format_nodes([node.name for node in some])
        host = after.hosts.get(some[0].name)
        where = ":".join(map(str, host.find_position(field)[:2])) if host else "inventory"
        end = f"from {was} to {will}" if was != will else f"to another {will} ({field})"
        why = f"{names} in service would move {end}: the jobs there are no longer seen; drain them first"
        yield PlanRisk("a serving node changes its scheduler", where, why)


def _differs(old: Node, new: Node, name: str) -> bool:
    return getattr(old.settings, name) != getattr(new.settings, name) and old.settings.workloads != "none"


def _scheduler(node: Node) -> str:
    return node.settings.workloads


def _find_unsigned_commits(before: FleetRevision, after: FleetRevision) -> Iterator[PlanRisk]:
    was, will = before.policy.commits, after.policy.commits
    if was and was.signed and not (will and will.signed):
        why = "from the merge on, assay acts on commits that nobody signed"
        yield PlanRisk("commits need no signature", after.policy_line("commits.signed"), why)


def _find_excused_admission(before: FleetRevision, after: FleetRevision) -> Iterator[PlanRisk]:
    """Yield the checks that known issues may excuse from the merge on where a node enters service."""
    known = before.policy.excuses.admission
    if new := [pattern for pattern in after.policy.excuses.admission if pattern not in known]:
        why = f"a known issue may excuse {', '.join(new)} on a node that enters service"
        yield PlanRisk("failures are excused", after.policy_line("excuses.admission"), why)
