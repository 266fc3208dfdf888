"""All that the files of a fleet import from assay: its playbooks, its suites, and plug-ins from outside.

These names stay where they are; every other module of assay may move or change with any version. `assay upgrade`
carries over what earlier fleets imported (old_imports.py).

To import this module loads nothing else: a name's module is loaded when the name is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

NAMES_OF_MODULES = {
    # playbooks: tasks that run in the process of ansible-playbook
    "assay.act.actions.action": ("require_effect",),
    "assay.act.remedies.ansible_playbook": (
        "PROGRESS_MARK",
        "find_task_node",
        "preload_fleet",
    ),
    "assay.act.remedies.boot": ("restart_node",),
    "assay.act.remedies.firmware_file": ("find_image",),
    "assay.act.remedies.firmware_update": (
        "FirmwareUpdateRun",
        "StageResult",
        "report_planned",
        "report_stages",
    ),
    "assay.act.remedies.firmware_stages": (
        "FirmwareStage",
        "select_stages",
    ),
    "assay.act.remedies.bmc_updates": ("make_bmc_connector",),
    "assay.act.actions.lab_guard": ("hold_to_context",),
    "assay.act.remedies.settings": (
        "BmcSettingsUpdate",
        "HostSettingsReadBack",
        "SystemSettingsUpdate",
    ),
    "assay.declare.home": ("find_home",),
    "assay.declare.stand_ins": ("refuse_spec",),
    "assay.ledger.file_locks": ("hold_node_lock",),
    "assay.model.specs.node.declared_settings": (
        "SettingMismatch",
        "format_setting_diff",
        "format_setting_mismatches",
        "make_role_values",
    ),
    "assay.model.text.safe_text": ("redact",),
    # every plug-in
    "assay.model.errors": ("AssayError",),
    "assay.model.node": ("Node",),
    "assay.model.specs.node_settings": ("NodeSettings",),
    # transports
    "assay.observe.transports.command": ("CommandTransport",),
    "assay.observe.transports.transport_protocol": (
        "ProbeTransport",
        "TransportContext",
    ),
    # schedulers
    "assay.model.cordon_ownership": (
        "is_our_reason",
        "prefix_reason",
    ),
    "assay.adapters.scheduler": (
        "CustomerJob",
        "SchedulerAdapter",
        "SchedulerNodeStatus",
        "SpareRunResult",
        "VERIFY_UNDRAIN",
        "VerifiedUndrain",
    ),
    # ticket sinks
    "assay.model.specs.credential_reference": ("CredentialReference",),
    "assay.model.specs.technician_work": ("SinkSettings",),
    "assay.model.ticket": ("TicketRecord",),
    "assay.adapters.tickets.sink": (
        "SinkContext",
        "SinkUnavailable",
        "TicketNotFound",
        "TicketRefusal",
        "TicketSink",
    ),
    "assay.adapters.tickets.markdown": ("format_ticket_markdown",),
    # log forms
    "assay.model.log_message": ("LogMessage",),
    "assay.observe.logs.kernel_log_search": ("KernelLogForm",),
    "assay.observe.logs.log_form": (
        "LogForm",
        "LogQuery",
        "UnknownLogForm",
    ),
    "assay.observe.logs.line_envelope": ("parse_iso_time",),
    # rules of `assay check`
    "assay.declare.check": (
        "RuleFinding",
        "rule",
    ),
    "assay.declare.repository.draft": ("RepositoryDraft",),
    "assay.model.specs.node.node_spec": ("NodeSpec",),
}
"""Where each name is defined. The imports below say the same to mypy and editors."""

if TYPE_CHECKING:
    pass
else:
    MODULE_OF_NAME = {name: module for module, names in NAMES_OF_MODULES.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in MODULE_OF_NAME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        value = globals()[name] = getattr(import_module(MODULE_OF_NAME[name]), name)
        return value

    def __dir__() -> list[str]:
        return sorted(MODULE_OF_NAME)
