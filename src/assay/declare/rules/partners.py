"""Settings of transports and schedulers that have no effect, and metrics and alerts that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from assay.declare.check import FilePosition, RuleFinding, rule
from assay.declare.declared_hosts import HostDeclaration
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.rules.dangling_names import format_few_names, suggest_name
from assay.model.errors import AssayError
from assay.model.plugins import TRANSPORTS
from assay.model.specs.fault_catalog import FaultCatalog, select_active_catalogs
from assay.model.specs.monitoring import Monitoring
from assay.model.specs.node.load_tools import WAYS_OF_SCHEDULERS
from assay.model.specs.node_settings import NodeVariables

SCHEDULER_SETTINGS = {
    "slurm_conf": "slurm",
    "slurm_spare_partition": "slurm",
    "slurm_cordon": "slurm",
    "kubernetes": "kubernetes",
}
BUILTIN_SCHEDULERS = frozenset({"none", *SCHEDULER_SETTINGS.values()})
"""Adapters that read their own settings only. An adapter from elsewhere may read any setting."""


@rule("ASY0160", "a node with the transport prometheus, but without `metrics`")
def missing_prometheus(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay can never read this node."""
    for host in draft.hosts:
        if host.settings and host.settings.transport == "prometheus" and host.settings.metrics is None:
            message = f"{host.name} is read through Prometheus, but no `metrics` are declared for it"
            yield RuleFinding(
                host.find_position("transport"), message, 'declare metrics: {url: …, match: {Hostname: "{name}"}}'
            )


@rule("ASY0161", "a monitoring map that does not exist")
def missing_monitoring(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay cannot interpret any metric of the node."""
    maps = draft.list_names(Monitoring)
    seen = set()
    for host in draft.hosts:
        if host.settings is None or host.settings.metrics is None or host.settings.metrics.monitoring in maps:
            continue
        place = host.find_position("metrics")
        if place not in seen and draft.is_complete(Monitoring):
            seen.add(place)
            name = host.settings.metrics.monitoring
            yield RuleFinding(place, f"there is no Monitoring {name}", suggest_name(name, maps))


@rule("ASY0162", "an alert with a fault that no catalogue has", needs=(FaultCatalog,))
def unknown_alert_fault(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay records the fault, but nothing follows."""
    catalogs = select_active_catalogs(draft.specs_of_model(FaultCatalog).values())
    classes = {name: fault for catalog in catalogs for name, fault in catalog.classes.items()}
    known = {*classes, *(number for fault in classes.values() for number in fault.list_xid_names())}
    for monitoring in draft.specs_of_model(Monitoring).values():
        sections = {"alerts": monitoring.alerts, "signals": monitoring.signals}
        entries = [
            (name, place, each) for name, some in sections.items() if some for place, each in enumerate(some.rules)
        ]
        for section, number, entry in entries:
            if "{" not in entry.fault and entry.fault not in known:
                place = draft.find_position(f"Monitoring/{monitoring.name}", section, "rules", number, "fault")
                yield RuleFinding(place, f"there is no fault class {entry.fault}", suggest_name(entry.fault, known))


@rule("ASY0130", "settings of a transport that is not used")
def unused_transport_settings(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """These settings have no effect, and nobody notices."""
    transports = _list_transport_settings()
    seen = set()
    for host in draft.hosts:
        for setting, transport in _unused_transport_settings(host, transports):
            place = host.find_position(setting)
            if place not in seen:
                seen.add(place)
                message = f"{host.name} is not read through {transport}, so {setting} has no effect"
                yield RuleFinding(place, message, f"write `transport: {transport}`, or leave {setting} out")


@rule("ASY0131", "several nodes read as this machine")
def several_local_nodes(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """All of them get the readings of the same machine."""
    local = [
        host for host in draft.hosts if host.settings and host.settings.transport == "local" and not host.settings.reach
    ]
    if len(local) > 1:
        message = f"{format_few_names([host.name for host in local])} are all read on the machine that assay runs on"
        yield RuleFinding(local[1].find_position("transport"), message, "give `transport: local` to one node at most")


@rule("ASY0132", "a node with the transport push, but without an agent")
def push_without_agent(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay never gets evidence of this node."""
    for host in draft.hosts:
        if host.settings and host.settings.transport == "push" and not host.settings.agent_token:
            message = f"{host.name} has `transport: push`, but no agent_token is declared for it"
            yield RuleFinding(
                host.find_position("transport"), message, "declare agent_token, or choose another transport"
            )


def _list_transport_settings() -> dict[str, str]:
    """Return the settings variable of each installed transport: variable → transport."""
    settings: dict[str, str] = {}
    for name in TRANSPORTS.names():
        try:
            transport = TRANSPORTS.load(name)
        except AssayError:
            continue  # a node that uses it is reported by its own variables
        if transport.settings_name:
            settings[transport.settings_name] = name
    return settings


def _unused_transport_settings(host: HostDeclaration, transports: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if host.settings is None:
        return
    for setting, transport in transports.items():
        is_used = host.settings.transport == transport and not host.settings.reach
        if host.variables.get(setting) is not None and not is_used:
            yield setting, transport


@rule("ASY0220", "settings of a scheduler that is not the node's")
def unused_scheduler_settings(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """These settings have no effect. If you believe that Slurm cordons such a node, you will find jobs on it."""
    for setting, scheduler in SCHEDULER_SETTINGS.items():
        default = NodeVariables.model_fields[setting].default  # which may stand there to override a group's setting
        owners = [host for host in draft.hosts if host.settings and getattr(host.settings, setting) != default]
        unused = {host.find_position(setting): host for host in reversed(owners) if not _uses(host, scheduler)}
        used: set[FilePosition] = set()
        if unused:  # to find the places of all owners takes time
            used = {host.find_position(setting) for host in owners if _uses(host, scheduler)}
        for place, host in reversed(unused.items()):
            if place not in used and host.settings:
                message = f"{host.name} has `workloads: {host.settings.workloads}`, so {setting} has no effect"
                yield RuleFinding(place, message, f"write `workloads: {scheduler}`, or leave {setting} out")


def _uses(host: HostDeclaration, scheduler: str) -> bool:
    return host.settings is not None and (
        host.settings.workloads == scheduler or host.settings.workloads not in BUILTIN_SCHEDULERS
    )


@rule("ASY0283", "a way of delivering the load that the node's scheduler cannot use")
def unusable_load_way(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The load never runs on these nodes, so nothing there proves that the GPUs compute correctly."""
    seen = set()
    for host in draft.hosts:
        if host.settings is None or host.settings.load is None:
            continue
        usable = WAYS_OF_SCHEDULERS.get(host.settings.workloads)
        place, way = host.find_position("load"), host.settings.load.way
        if usable is not None and way not in usable and place not in seen:
            seen.add(place)
            message = f"{host.name} has `workloads: {host.settings.workloads}`, under which the way {way} cannot run"
            yield RuleFinding(place, message, f"write one of these ways: {', '.join(usable)}")
