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
    "assay.actions.allowed_effects": ("require_effect",),
    "assay.actions.ansible_playbook": ("PROGRESS_MARK", "find_task_node", "preload_fleet"),
    "assay.actions.boot": ("restart_node",),
    "assay.actions.firmware.component_image": ("find_image",),
    "assay.actions.firmware.firmware_report": ("report_planned", "report_stages"),
    "assay.actions.firmware.firmware_stages": ("FirmwareStage", "select_stages"),
    "assay.actions.firmware.firmware_update": ("FirmwareUpdateRun", "StageResult"),
    "assay.actions.firmware.redfish_update_service": ("make_bmc_connector",),
    "assay.actions.lab_guard": ("hold_to_context",),
    "assay.actions.settings.bmc_settings_update": ("BmcSettingsUpdate",),
    "assay.actions.settings.host_settings_read_back": ("HostSettingsReadBack",),
    "assay.actions.settings.system_settings_update": ("SystemSettingsUpdate",),
    "assay.fleet.home": ("find_home",),
    "assay.fleet.stand_ins": ("refuse_spec",),
    "assay.ledger.file_locks": ("hold_node_lock",),
    "assay.model.configuration.declared_settings": ("make_role_values",),
    "assay.model.configuration.setting_mismatch": (
        "SettingMismatch",
        "format_setting_diff",
        "format_setting_mismatches",
    ),
    "assay.model.texts.secret_redaction": ("redact",),
    # every plug-in
    "assay.model.errors": ("AssayError",),
    "assay.model.node": ("Node",),
    "assay.model.specs.node_settings": ("NodeSettings",),
    # transports
    "assay.observe.transports.command_transport": ("CommandTransport",),
    "assay.observe.transports.transport_protocol": ("ProbeTransport", "TransportContext"),
    # schedulers
    "assay.model.cordon_ownership": ("is_our_reason", "prefix_reason"),
    "assay.schedulers.scheduler_adapter": (
        "VERIFY_UNDRAIN",
        "CustomerJob",
        "SchedulerAdapter",
        "SchedulerNodeStatus",
        "SpareRunResult",
        "VerifiedUndrain",
    ),
    # ticket sinks
    "assay.model.specs.credential_reference": ("CredentialReference",),
    "assay.model.specs.sink_settings": ("SinkSettings",),
    "assay.model.ticket": ("TicketRecord",),
    "assay.tickets.sink_protocol": ("SinkContext", "SinkUnavailable", "TicketNotFound", "TicketRefusal", "TicketSink"),
    "assay.tickets.ticket_markdown": ("format_ticket_markdown",),
    # log forms
    "assay.model.log_message": ("LogMessage",),
    "assay.observe.logs.kernel_log_search": ("KernelLogForm",),
    "assay.observe.logs.log_form_protocol": ("LogForm", "LogQuery", "UnknownLogForm"),
    "assay.observe.logs.time_stamps": ("parse_iso_time",),
    # rules of `assay check`
    "assay.fleet.repository_check": ("RuleFinding", "rule"),
    "assay.fleet.repository_draft": ("RepositoryDraft",),
    "assay.model.specs.node.node_spec": ("NodeSpec",),
}
"""Where each name is defined. The imports below say the same to mypy and editors."""

if TYPE_CHECKING:
    from assay.actions.allowed_effects import require_effect as require_effect
    from assay.actions.ansible_playbook import (
        PROGRESS_MARK as PROGRESS_MARK,
        find_task_node as find_task_node,
        preload_fleet as preload_fleet,
    )
    from assay.actions.boot import restart_node as restart_node
    from assay.actions.firmware.component_image import find_image as find_image
    from assay.actions.firmware.firmware_report import report_planned as report_planned, report_stages as report_stages
    from assay.actions.firmware.firmware_stages import FirmwareStage as FirmwareStage, select_stages as select_stages
    from assay.actions.firmware.firmware_update import (
        FirmwareUpdateRun as FirmwareUpdateRun,
        StageResult as StageResult,
    )
    from assay.actions.firmware.redfish_update_service import make_bmc_connector as make_bmc_connector
    from assay.actions.lab_guard import hold_to_context as hold_to_context
    from assay.actions.settings.bmc_settings_update import BmcSettingsUpdate as BmcSettingsUpdate
    from assay.actions.settings.host_settings_read_back import HostSettingsReadBack as HostSettingsReadBack
    from assay.actions.settings.system_settings_update import SystemSettingsUpdate as SystemSettingsUpdate
    from assay.fleet.home import find_home as find_home
    from assay.fleet.repository_check import RuleFinding as RuleFinding, rule as rule
    from assay.fleet.repository_draft import RepositoryDraft as RepositoryDraft
    from assay.fleet.stand_ins import refuse_spec as refuse_spec
    from assay.ledger.file_locks import hold_node_lock as hold_node_lock
    from assay.model.configuration.declared_settings import make_role_values as make_role_values
    from assay.model.configuration.setting_mismatch import (
        SettingMismatch as SettingMismatch,
        format_setting_diff as format_setting_diff,
        format_setting_mismatches as format_setting_mismatches,
    )
    from assay.model.cordon_ownership import is_our_reason as is_our_reason, prefix_reason as prefix_reason
    from assay.model.errors import AssayError as AssayError
    from assay.model.log_message import LogMessage as LogMessage
    from assay.model.node import Node as Node
    from assay.model.specs.credential_reference import CredentialReference as CredentialReference
    from assay.model.specs.node.node_spec import NodeSpec as NodeSpec
    from assay.model.specs.node_settings import NodeSettings as NodeSettings
    from assay.model.specs.sink_settings import SinkSettings as SinkSettings
    from assay.model.texts.secret_redaction import redact as redact
    from assay.model.ticket import TicketRecord as TicketRecord
    from assay.observe.logs.kernel_log_search import KernelLogForm as KernelLogForm
    from assay.observe.logs.log_form_protocol import (
        LogForm as LogForm,
        LogQuery as LogQuery,
        UnknownLogForm as UnknownLogForm,
    )
    from assay.observe.logs.time_stamps import parse_iso_time as parse_iso_time
    from assay.observe.transports.command_transport import CommandTransport as CommandTransport
    from assay.observe.transports.transport_protocol import (
        ProbeTransport as ProbeTransport,
        TransportContext as TransportContext,
    )
    from assay.schedulers.scheduler_adapter import (
        VERIFY_UNDRAIN as VERIFY_UNDRAIN,
        CustomerJob as CustomerJob,
        SchedulerAdapter as SchedulerAdapter,
        SchedulerNodeStatus as SchedulerNodeStatus,
        SpareRunResult as SpareRunResult,
        VerifiedUndrain as VerifiedUndrain,
    )
    from assay.tickets.sink_protocol import (
        SinkContext as SinkContext,
        SinkUnavailable as SinkUnavailable,
        TicketNotFound as TicketNotFound,
        TicketRefusal as TicketRefusal,
        TicketSink as TicketSink,
    )
    from assay.tickets.ticket_markdown import format_ticket_markdown as format_ticket_markdown
else:
    MODULE_OF_NAME = {name: module for module, names in NAMES_OF_MODULES.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in MODULE_OF_NAME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        value = globals()[name] = getattr(import_module(MODULE_OF_NAME[name]), name)
        return value

    def __dir__() -> list[str]:
        return sorted(MODULE_OF_NAME)
