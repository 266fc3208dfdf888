"""Metrics and alerts that lead nowhere.

Ways to a node's readings that cannot be meant.

Settings of a scheduler on nodes on which another one, or none, places work.
"""

from __future__ import annotations

from collections.abc import Iterator

from assay.fleet.check import FilePosition, RuleFinding, rule
from assay.fleet.repository_draft import HostDeclaration, RepositoryDraft
from assay.fleet.rules.dangling_names import format_few_names, suggest_name
from assay.model.specs.fault_catalog import FaultCatalog, select_active_catalogs
from assay.model.specs.monitoring import Monitoring
from assay.model.specs.node_settings import NodeVariables


@rule("ASY0160", "a node read through a Prometheus that nobody names", why="It would never be read.")
def missing_prometheus(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find nodes whose transport is prometheus and whose `metrics` do not say which one."""
    for host in draft.hosts:
        if host.settings and host.settings.transport == "prometheus" and host.settings.metrics is None:
            said = f"{host.name} is read through Prometheus, but no `metrics` are declared for it"
            yield RuleFinding(
                host.find_position("transport"), said, 'declare metrics: {url: …, match: {Hostname: "{name}"}}'
            )


@rule("ASY0161", "a monitoring map that does not exist", why="No metric of the node would mean anything.")
def missing_monitoring(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find nodes whose metrics are to be read by a Monitoring that is not there, once for each place that says so."""
    maps, seen = draft.list_names(Monitoring), set()
    for host in draft.hosts:
        if host.settings is None or host.settings.metrics is None or host.settings.metrics.monitoring in maps:
            continue
        place = host.find_position("metrics")
        if place not in seen and draft.is_complete(Monitoring):
            seen.add(place)
            name = host.settings.metrics.monitoring
            yield RuleFinding(place, f"there is no Monitoring {name}", suggest_name(name, maps))


@rule(
    "ASY0162",
    "an alert that becomes a fault which no catalogue has",
    why="It would be noted and nothing would follow.",
    needs=(FaultCatalog,),
)
def unknown_alert_fault(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find rules of alerts whose fault is of no class, where its name does not hang on a label."""
    catalogs = select_active_catalogs(draft.specs_of_model(FaultCatalog).values())
    known = {name for one in catalogs for name in one.classes}
    known |= {number for one in catalogs for fault in one.classes.values() for number in fault.list_xid_names()}
    for one in draft.specs_of_model(Monitoring).values():
        for number, entry in enumerate(one.alerts.rules if one.alerts else ()):
            if "{" not in entry.fault and entry.fault not in known:
                place = draft.find_position(f"Monitoring/{one.name}", "alerts", "rules", number, "fault")
                yield RuleFinding(place, f"there is no fault class {entry.fault}", suggest_name(entry.fault, known))


TRANSPORT_SETTINGS = {"slurm_step": "slurm", "kubernetes_exec": "kubernetes", "metrics": "prometheus"}


@rule("ASY0130", "settings of a transport that is not used", why="They would change nothing, and nobody would notice.")
def unused_transport_settings(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find settings of another transport than the node has, once for each place that says them."""
    seen = set()
    for host in draft.hosts:
        for setting, transport in _unused_transport_settings(host):
            place = host.find_position(setting)
            if place not in seen:
                seen.add(place)
                said = f"{host.name} is not read through {transport}, so {setting} has no effect"
                yield RuleFinding(place, said, f"write `transport: {transport}`, or leave {setting} out")


@rule("ASY0131", "several nodes read as this machine", why="Each of them would be judged by the readings of one.")
def several_local_nodes(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find more than one node whose transport is local."""
    here = [
        host for host in draft.hosts if host.settings and host.settings.transport == "local" and not host.settings.reach
    ]
    if len(here) > 1:
        said = f"{format_few_names([host.name for host in here])} are all read on the machine that assay runs on"
        yield RuleFinding(here[1].find_position("transport"), said, "give `transport: local` to one node at most")


@rule("ASY0132", "a node that pushes, but has no agent to", why="Its evidence would never come.")
def push_without_agent(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find nodes whose readings are pushed and whose agent has no token to push with."""
    for host in draft.hosts:
        if host.settings and host.settings.transport == "push" and host.settings.agent_token is None:
            said = f"{host.name} is read by what its agent pushes, but no agent_token is declared for it"
            yield RuleFinding(host.find_position("transport"), said, "declare agent_token, or choose another transport")


def _unused_transport_settings(host: HostDeclaration) -> Iterator[tuple[str, str]]:
    if host.settings is None:
        return
    for setting, transport in TRANSPORT_SETTINGS.items():
        if getattr(host.settings, setting) is not None and (
            host.settings.transport != transport or host.settings.reach
        ):
            yield setting, transport


SCHEDULER_SETTINGS = {
    "slurm_conf": "slurm",
    "slurm_spare_partition": "slurm",
    "slurm_cordon": "slurm",
    "kubernetes": "kubernetes",
}
BUILTIN_SCHEDULERS = frozenset({"none", *SCHEDULER_SETTINGS.values()})
"""Adapters that read nothing but their own settings; one that somebody else has written may read any."""


@rule(
    "ASY0220",
    "settings of a scheduler that is not the node's",
    why="They would change nothing: who thinks that a node is cordoned in Slurm would find jobs on it.",
)
def unused_scheduler_settings(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find settings that no node reads which gets them from there, once for each place that says them."""
    for setting, scheduler in SCHEDULER_SETTINGS.items():
        said = [host for host in draft.hosts if _decides_setting(host, setting)]
        idle = {host.find_position(setting): host for host in reversed(said) if not _uses_scheduler(host, scheduler)}
        used: set[FilePosition] = (
            {host.find_position(setting) for host in said if _uses_scheduler(host, scheduler)} if idle else set()
        )
        for place, host in reversed(idle.items()):
            if place not in used and host.settings:
                told = f"{host.name} has `workloads: {host.settings.workloads}`, so {setting} has no effect"
                yield RuleFinding(place, told, f"write `workloads: {scheduler}`, or leave {setting} out")


def _decides_setting(host: HostDeclaration, setting: str) -> bool:
    """Whether a host is given more than what counts without a word: that is how a group's setting is taken back."""
    return host.settings is not None and getattr(host.settings, setting) != NodeVariables.model_fields[setting].default


def _uses_scheduler(host: HostDeclaration, scheduler: str) -> bool:
    return host.settings is not None and (
        host.settings.workloads == scheduler or host.settings.workloads not in BUILTIN_SCHEDULERS
    )
