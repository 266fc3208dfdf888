"""Says how a changed setting reaches a node in service: brought where the node is, by a rollout, or by people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from assay.decide.moves.corrections import find_allowed_correction
from assay.decide.plan.inputs import FleetRevision
from assay.declare.spec_values_read_by_checks import CheckInputs, list_spec_paths
from assay.model.decision import CONFIGURE
from assay.model.facts import frozen
from assay.model.specs.check_catalog import PARTS_OF_SUBJECTS, CheckDeclaration
from assay.model.specs.management_profile import ManagementProfile
from assay.model.specs.node.declared_settings import SETTING_ROLES, find_setting
from assay.model.specs.policy_response import respond_to_class

IMAGE = "image"
"""The name of a SettingChange of the image that a node boots, which no NodeSpec declares."""
SettingWay = Literal["at_once", "idle", "rollout", "ticket", "noted", "moves", "tracked", "unseen", "next_wipe", ""]
WAYS: tuple[SettingWay, ...] = get_args(SettingWay)
"""The gentlest first."""
IN_SERVICE: frozenset[SettingWay] = frozenset({"at_once", "idle"})
PART_LISTS = ("gpus.pci", "hcas", "nics", "psus.count", "nvme.count")
"""What a check reads only to know its parts."""


@frozen
class SettingRoute:
    """How a setting reaches a node, and the rule that says so (`file:line name`).

    `at_once`: while jobs run. `idle`: with the next idle moment. `rollout`: the node leaves service. `ticket`: people
    are asked. `noted`: the fault is only recorded. `moves`: the rule sends the node to another state. `tracked`: the
    profile does not act on faults. `unseen`: no check of the state in service reads it. "": nothing is applied.
    """

    way: SettingWay
    rule: str = ""


def find_setting_route(after: FleetRevision, profile: ManagementProfile, setting: str, differing: str) -> SettingRoute:
    """Return the gentlest way that the policy allows. `differing` names the entries that change."""
    if not profile.acts_on_faults:
        return SettingRoute("tracked")
    if SETTING_ROLES[setting].applied == "zap":
        return make_rollout_route(after)
    state = after.policy.service_state
    routes = [find_check_route(after, profile, state, check, differing) for check in _list_watching(after, setting)]
    return min(routes, key=lambda route: WAYS.index(route.way), default=SettingRoute("unseen"))


def make_rollout_route(after: FleetRevision) -> SettingRoute:
    """Return the route of what a node gets out of service."""
    return SettingRoute("rollout", f"{after.policy_line('rollouts')} rollouts")


def find_check_route(
    after: FleetRevision, profile: ManagementProfile, state: str, check: CheckDeclaration, differing: str
) -> SettingRoute:
    """Return what follows if a check fails on a node in `state` because of settings."""
    routes = (_find_route(after, profile, state, check, differing, in_use) for in_use in (False, True))
    return min(routes, key=lambda route: WAYS.index(route.way))


def _find_route(
    after: FleetRevision, profile: ManagementProfile, state: str, check: CheckDeclaration, differing: str, in_use: bool
) -> SettingRoute:
    answer = respond_to_class(after.policy, after.catalog, state, check.fault, in_use)
    line = f"{after.policy_line(f'faults.{answer.rule}')} {answer.rule}"
    if answer.remedy != CONFIGURE:
        return SettingRoute("moves" if answer.moves_node else "ticket" if answer.remedy == "ticket" else "noted", line)
    settings = sorted(list_settings_read(check, after.reads.get(check.id)))
    rule = after.policy.faults[answer.rule]
    way = find_allowed_correction(after.policy.corrections, profile, rule, settings, differing)
    return SettingRoute("ticket" if way == "zap" else way, line)


def _list_watching(after: FleetRevision, setting: str) -> Iterator[CheckDeclaration]:
    """Yield the checks that a state in service watches, and that read a setting."""
    watched = set(after.policy.states[after.policy.service_state].watch)
    for check in after.checks.values():
        if check.fault and watched & set(check.phases) and reads_field(check, after.reads.get(check.id), setting):
            yield check


def reads_field(check: CheckDeclaration, reads: CheckInputs | None, field: str) -> bool:
    """Whether a check reads a field of the spec (a dotted path), or runs once for each part that the field declares."""
    if field == IMAGE:
        return reads is not None and ("node", "image") in reads.declared
    paths = list_spec_paths(check, reads) if reads else []
    return PARTS_OF_SUBJECTS.get(check.subject) == field or any(overlap(path, field) for path in paths)


def overlap(path: str, field: str) -> bool:
    """Whether one of two dotted paths holds the other."""
    return f"{path}.".startswith(f"{field}.") or (bool(path) and f"{field}.".startswith(f"{path}."))


def list_settings_read(check: CheckDeclaration, reads: CheckInputs | None) -> frozenset[str]:
    """Return the settings that differ if a check fails; none if it reads anything else, so that nobody knows."""
    paths = list_spec_paths(check, reads) if reads and not reads.limits else []
    settings = frozenset(find_setting(path) for path in paths if path not in PART_LISTS)
    return frozenset() if "" in settings else settings
