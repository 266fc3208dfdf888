"""The action `configure`: gives a node in service the settings of its decision, with the roles of one playbook.

It restarts nothing. The probe's readings, and the BMC's for settings of the BMC, prove it.
"""

from __future__ import annotations

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.act.remedies.ansible_playbook import run_playbook
from assay.act.remedies.gpu_occupancy import require_empty
from assay.act.remedies.settings import find_mismatches_at
from assay.adapters.scheduler import read_node_status
from assay.model.errors import AssayError
from assay.model.specs.node.declared_settings import (
    SETTING_ROLES,
    SettingMismatch,
    find_setting,
    format_setting_mismatches,
    needs_idle_node,
)
from assay.model.specs.node.settings_comparison import is_unknown

patience_s = 120.0
undone_by = ""
"""The spec says what is right. To go back, declare the older value."""


def before(context: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the settings that differ."""
    return {"settings": {mismatch.name: mismatch.seen for mismatch in _find_mismatches(context, intent)}}


def run(context: ActionContext, intent: EffectIntent) -> None:
    """Run the roles of the settings that differ. Raises AssayError if that could disturb a job."""
    mismatches = _find_mismatches(context, intent)
    roles = sorted({SETTING_ROLES[find_setting(mismatch.name)].role for mismatch in mismatches})
    if intent.params.get("idle"):
        status = read_node_status(context.scheduler(intent.node), intent.node)
        require_empty(context, intent.node, status, "no setting that needs an idle node is brought")
    _require_harmless(context, intent, roles)
    if roles:
        run_playbook(context, intent, "configure.yml", {"configure_restarts": False}, tags=roles)


def verify(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done if the settings read as declared. It cannot tell if some cannot be read and no other one differs."""
    mismatches = _find_mismatches(context, intent)
    if not mismatches:
        return EffectVerification(True, f"as declared: {', '.join(intent.params['settings'])}")
    facts: EffectFacts = {"settings": {mismatch.name: mismatch.seen for mismatch in mismatches}}
    done = None if all(map(is_unknown, mismatches)) else False
    return EffectVerification(done, format_setting_mismatches(mismatches), facts)


def _find_mismatches(context: ActionContext, intent: EffectIntent) -> list[SettingMismatch]:
    return find_mismatches_at(context.fleet, intent.node, intent.params["settings"])


def _require_harmless(context: ActionContext, intent: EffectIntent, roles: list[str]) -> None:
    """Raise AssayError if a role would also bring a setting that differs and may not be brought now."""
    settings = [path for path, setting in SETTING_ROLES.items() if setting.role in roles]
    for mismatch in find_mismatches_at(context.fleet, intent.node, settings):
        setting = find_setting(mismatch.name)
        if SETTING_ROLES[setting].applied == "zap":
            raise AssayError(f"{mismatch.name} differs too, and only zap brings it", where=intent.node)
        if not intent.params.get("idle") and needs_idle_node(setting, mismatch.name):
            raise AssayError(f"{mismatch.name} differs too, and needs an idle node", where=intent.node)
