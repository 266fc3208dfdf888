"""Serves, for one release, the inner modules from which fleets imported before there was `assay.fleetkit`.

`assay/__init__.py` asks here once nothing else finds a module of assay, so a module that is still where it was is
loaded as ever. `assay upgrade` rewrites a fleet's imports by the same table.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

NEW = "assay.fleetkit"
TABLE = """
actions allowed_effects: require_effect
actions ansible_playbook: PROGRESS_MARK, find_task_node, preload_fleet
actions boot: restart_node
actions firmware component_image: find_image
actions firmware firmware_report: report_planned, report_stages
actions firmware firmware_stages: FirmwareStage, select_stages
actions firmware firmware_update: FirmwareUpdateRun, StageResult
actions firmware redfish_update_service: make_bmc_connector
actions lab_guard: hold_to_context
actions settings bmc_settings_update: BmcSettingsUpdate
actions settings host_settings_read_back: HostSettingsReadBack
actions settings system_settings_update: SystemSettingsUpdate
fleet home: find_home
fleet repository_check: RuleFinding, rule
fleet repository_draft: RepositoryDraft
fleet stand_ins: refuse_spec
ledger file_locks: hold_node_lock
model configuration declared_settings: make_role_values
model configuration setting_mismatch: SettingMismatch, format_setting_diff, format_setting_mismatches
model cordon_ownership: is_our_reason, prefix_reason
model errors: AssayError
model log_message: LogMessage
model node: Node
model specs credential_reference: CredentialReference
model specs node node_spec: NodeSpec
model specs node_settings: NodeSettings
model specs sink_settings: SinkSettings
model texts secret_redaction: redact
model ticket: TicketRecord
observe logs kernel_log_search: KernelLogForm
observe logs log_form_protocol: LogForm, LogQuery, UnknownLogForm
observe logs time_stamps: parse_iso_time
observe transports command_transport: CommandTransport
observe transports transport_protocol: ProbeTransport, TransportContext
schedulers scheduler_adapter: VERIFY_UNDRAIN, CustomerJob, SchedulerAdapter, SchedulerNodeStatus, SpareRunResult
schedulers scheduler_adapter: VerifiedUndrain
tickets sink_protocol: SinkContext, SinkUnavailable, TicketNotFound, TicketRefusal, TicketSink
tickets ticket_markdown: format_ticket_markdown
"""
"""Where fleets found the names that are in `assay.fleetkit` now.

Spaces stand between the words of a module's path, so that nothing that renames modules renames these.
"""


class OldModules(Loader):
    """Makes a stand-in for each old module, and for the packages above it. It loads what it stands for when asked."""

    def exec_module(self, module: ModuleType) -> None:
        """Warn who imports it, and pass the names on."""
        names = list_old_modules().get(module.__name__, ())
        if not names:
            return

        def find(name: str) -> Any:
            if name in names:
                return getattr(import_module(NEW), name)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}", name=name)

        vars(module)["__getattr__"] = find
        taken = f"`from {NEW} import {', '.join(names)}`"
        message = f"{module.__name__} is gone: write {taken}, as `assay upgrade` does; the next version drops it"
        warnings.warn(message, DeprecationWarning, stacklevel=2)  # 2: importlib's own frames do not count


@cache
def list_old_modules() -> dict[str, tuple[str, ...]]:
    """Return the names that fleets took from each old module, by its whole name."""
    found: dict[str, tuple[str, ...]] = {}
    for line in TABLE.strip().splitlines():
        path, _, names = line.partition(": ")
        module = ".".join(["assay", *path.split()])
        found[module] = (*found.get(module, ()), *names.split(", "))
    return found


def find_old_module(name: str) -> ModuleSpec | None:
    """Return the stand-in for an old module, or for a package in which one was. None for any other module."""
    old = list_old_modules()
    is_package = any(module.startswith(f"{name}.") for module in old)
    return ModuleSpec(name, OldModules(), is_package=is_package) if is_package or name in old else None
