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
        "report_failure",
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
    from assay.act.actions.action import require_effect as require_effect
    from assay.act.actions.lab_guard import hold_to_context as hold_to_context
    from assay.act.remedies.ansible_playbook import (
        PROGRESS_MARK as PROGRESS_MARK,
        find_task_node as find_task_node,
        preload_fleet as preload_fleet,
    )
    from assay.act.remedies.bmc_updates import make_bmc_connector as make_bmc_connector
    from assay.act.remedies.boot import restart_node as restart_node
    from assay.act.remedies.firmware_file import find_image as find_image
    from assay.act.remedies.firmware_stages import FirmwareStage as FirmwareStage, select_stages as select_stages
    from assay.act.remedies.firmware_update import (
        FirmwareUpdateRun as FirmwareUpdateRun,
        StageResult as StageResult,
        report_failure as report_failure,
        report_planned as report_planned,
        report_stages as report_stages,
    )
    from assay.act.remedies.settings import (
        BmcSettingsUpdate as BmcSettingsUpdate,
        HostSettingsReadBack as HostSettingsReadBack,
        SystemSettingsUpdate as SystemSettingsUpdate,
    )
    from assay.adapters.scheduler import (
        CustomerJob as CustomerJob,
        SchedulerAdapter as SchedulerAdapter,
        SchedulerNodeStatus as SchedulerNodeStatus,
        SpareRunResult as SpareRunResult,
        VERIFY_UNDRAIN as VERIFY_UNDRAIN,
        VerifiedUndrain as VerifiedUndrain,
    )
    from assay.adapters.tickets.markdown import format_ticket_markdown as format_ticket_markdown
    from assay.adapters.tickets.sink import (
        SinkContext as SinkContext,
        SinkUnavailable as SinkUnavailable,
        TicketNotFound as TicketNotFound,
        TicketRefusal as TicketRefusal,
        TicketSink as TicketSink,
    )
    from assay.declare.check import RuleFinding as RuleFinding, rule as rule
    from assay.declare.home import find_home as find_home
    from assay.declare.repository.draft import RepositoryDraft as RepositoryDraft
    from assay.declare.stand_ins import refuse_spec as refuse_spec
    from assay.ledger.file_locks import hold_node_lock as hold_node_lock
    from assay.model.cordon_ownership import is_our_reason as is_our_reason, prefix_reason as prefix_reason
    from assay.model.errors import AssayError as AssayError
    from assay.model.log_message import LogMessage as LogMessage
    from assay.model.node import Node as Node
    from assay.model.specs.credential_reference import CredentialReference as CredentialReference
    from assay.model.specs.node.declared_settings import (
        SettingMismatch as SettingMismatch,
        format_setting_diff as format_setting_diff,
        format_setting_mismatches as format_setting_mismatches,
        make_role_values as make_role_values,
    )
    from assay.model.specs.node.node_spec import NodeSpec as NodeSpec
    from assay.model.specs.node_settings import NodeSettings as NodeSettings
    from assay.model.specs.technician_work import SinkSettings as SinkSettings
    from assay.model.text.safe_text import redact as redact
    from assay.model.ticket import TicketRecord as TicketRecord
    from assay.observe.logs.kernel_log_search import KernelLogForm as KernelLogForm
    from assay.observe.logs.line_envelope import parse_iso_time as parse_iso_time
    from assay.observe.logs.log_form import LogForm as LogForm, LogQuery as LogQuery, UnknownLogForm as UnknownLogForm
    from assay.observe.transports.command import CommandTransport as CommandTransport
    from assay.observe.transports.transport_protocol import (
        ProbeTransport as ProbeTransport,
        TransportContext as TransportContext,
    )
else:
    MODULE_OF_NAME = {name: module for module, names in NAMES_OF_MODULES.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in MODULE_OF_NAME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        value = globals()[name] = getattr(import_module(MODULE_OF_NAME[name]), name)
        return value

    def __dir__() -> list[str]:
        return sorted(MODULE_OF_NAME)
