"""Says whether policy, profile and setting let a node in service get settings where it is, and when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assay.model.decision import CONFIGURE
from assay.model.specs.management_profile import ManagementProfile
from assay.model.specs.node.correction_rules import CorrectionRules, needs_idle_node
from assay.model.specs.node.declared_settings import SETTING_ROLES, SettingApplication
from assay.model.specs.policy_sections import FaultRule

IDLE_ACTIONS = {"cordon", "uncordon"}
"""What a correction needs besides `configure` if the node must be idle."""


def find_allowed_correction(
    rules: CorrectionRules, profile: ManagementProfile, rule: FaultRule, settings: Sequence[str], differing: str
) -> SettingApplication:
    """Return when a node gets the settings that one check reads; `zap` if any of that is left to people.

    `rule` is the rule for the fault; `differing` says which entries differ: some of them need an idle node.
    """
    applications = {rules.find_application(one) for one in settings}
    if not settings or "zap" in applications:
        return "zap"
    idle = rule.timing == "pending" or "idle" in applications
    needs_idle = idle or any(needs_idle_node(one, differing) for one in settings)
    if not may_correct(profile, settings, needs_idle=needs_idle):
        return "zap"
    return "idle" if needs_idle else "at_once"


def may_correct(profile: ManagementProfile, settings: Iterable[str], *, needs_idle: bool) -> bool:
    """Whether a profile lets assay bring these settings to a node in service."""
    actions = {CONFIGURE, *(IDLE_ACTIONS if needs_idle else ())}
    of_host = any(SETTING_ROLES[one].home != "bmc" for one in settings)
    return profile.acts_on_faults and actions <= set(profile.actions) and (profile.host_settings or not of_host)
