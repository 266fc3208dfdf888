"""Ways to a node's readings that cannot be meant."""

from __future__ import annotations

from collections.abc import Iterator

from assay.fleet.draft import Draft, HostEntry
from assay.fleet.rules.book import Finding, rule
from assay.fleet.rules.names import few

SETTINGS = {"slurm_step": "slurm", "kubernetes_exec": "kubernetes", "metrics": "prometheus"}


@rule("ASY0130", "settings of a transport that is not used", why="They would change nothing, and nobody would notice.")
def unused_settings(draft: Draft) -> Iterator[Finding]:
    """Find settings of another transport than the node has, once for each place that says them."""
    seen = set()
    for host in draft.hosts:
        for setting, transport in _unused(host):
            place = host.place(setting)
            if place not in seen:
                seen.add(place)
                said = f"{host.name} is not read through {transport}, so {setting} has no effect"
                yield Finding(place, said, f"write `transport: {transport}`, or leave {setting} out")


@rule("ASY0131", "several nodes read as this machine", why="Each of them would be judged by the readings of one.")
def several_are_here(draft: Draft) -> Iterator[Finding]:
    """Find more than one node whose transport is local."""
    here = [host for host in draft.hosts if host.read and host.read.transport == "local" and not host.read.reach]
    if len(here) > 1:
        said = f"{few([host.name for host in here])} are all read on the machine that assay runs on"
        yield Finding(here[1].place("transport"), said, "give `transport: local` to one node at most")


@rule("ASY0132", "a node that pushes, but has no agent to", why="Its evidence would never come.")
def nobody_pushes(draft: Draft) -> Iterator[Finding]:
    """Find nodes whose readings are pushed and whose agent has no token to push with."""
    for host in draft.hosts:
        if host.read and host.read.transport == "push" and host.read.agent_token is None:
            said = f"{host.name} is read by what its agent pushes, but no agent_token is declared for it"
            yield Finding(host.place("transport"), said, "declare agent_token, or choose another transport")


def _unused(host: HostEntry) -> Iterator[tuple[str, str]]:
    if host.read is None:
        return
    for setting, transport in SETTINGS.items():
        if getattr(host.read, setting) is not None and (host.read.transport != transport or host.read.reach):
            yield setting, transport
