"""Gates that hold nobody to anything."""

from __future__ import annotations

from collections.abc import Iterator

from assay.fleet.draft import Draft
from assay.fleet.rules.book import Finding, rule
from assay.fleet.rules.names import nearest
from assay.model.gates import ANY, Gates

FABRIC = "fabric"
"""What is judged of fabrics counts as a pool of this name."""


@rule("ASY0180", "a gate for a pool that does not exist", why="Nobody would be held to its bounds.")
def strange_pool(draft: Draft) -> Iterator[Finding]:
    """Find pools of gates that the inventory does not have."""
    pools = {host.pool for host in draft.hosts}
    for gates in draft.of(Gates).values() if draft.all_hosts_read else ():
        for name in gates.pools:
            if name not in pools | {ANY, FABRIC}:
                place = draft.at(f"Gates/{gates.name}", "pools", name)
                yield Finding(place, f"there is no pool {name}", nearest(name, pools))


@rule(
    "ASY0181",
    "a bound for any other pool where there is none",
    why="It looks as if something were held to it, and nothing is.",
)
def nothing_left(draft: Draft) -> Iterator[Finding]:
    """Find bounds of `any` that every pool has in its own right."""
    pools = {host.pool for host in draft.hosts}
    pools |= {FABRIC for host in draft.hosts if host.variables.get("fabric")}
    for gates in draft.of(Gates).values() if draft.all_hosts_read else ():
        for bound in ("success_percent", "unknown_percent"):
            own = {name for name, gate in gates.pools.items() if getattr(gate, bound) is not None}
            if ANY in own and pools <= own:
                place = draft.at(f"Gates/{gates.name}", "pools", ANY, bound)
                yield Finding(place, f"every pool has a {bound} of its own", "take this one out")
