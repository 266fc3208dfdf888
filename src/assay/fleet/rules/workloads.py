"""Settings of a scheduler on nodes on which another one, or none, places work."""

from __future__ import annotations

from collections.abc import Iterator

from assay.fleet.draft import Draft, HostEntry
from assay.fleet.rules.book import Finding, Place, rule
from assay.fleet.variables import NodeVariables

SETTINGS = {
    "slurm_conf": "slurm",
    "slurm_spare_partition": "slurm",
    "slurm_cordon": "slurm",
    "kubernetes": "kubernetes",
}
OURS = frozenset({"none", *SETTINGS.values()})
"""Adapters that read nothing but their own settings; one that somebody else has written may read any."""


@rule(
    "ASY0220",
    "settings of a scheduler that is not the node's",
    why="They would change nothing: who thinks that a node is cordoned in Slurm would find jobs on it.",
)
def unused_settings(draft: Draft) -> Iterator[Finding]:
    """Find settings that no node reads which gets them from there, once for each place that says them."""
    for setting, scheduler in SETTINGS.items():
        said = [host for host in draft.hosts if _says(host, setting)]
        idle = {host.place(setting): host for host in reversed(said) if not _reads(host, scheduler)}
        used: set[Place] = {host.place(setting) for host in said if _reads(host, scheduler)} if idle else set()
        for place, host in reversed(idle.items()):
            if place not in used and host.read:
                told = f"{host.name} has `workloads: {host.read.workloads}`, so {setting} has no effect"
                yield Finding(place, told, f"write `workloads: {scheduler}`, or leave {setting} out")


def _says(host: HostEntry, setting: str) -> bool:
    """Whether a host is given more than what counts without a word: that is how a group's setting is taken back."""
    return host.read is not None and getattr(host.read, setting) != NodeVariables.model_fields[setting].default


def _reads(host: HostEntry, scheduler: str) -> bool:
    return host.read is not None and (host.read.workloads == scheduler or host.read.workloads not in OURS)
