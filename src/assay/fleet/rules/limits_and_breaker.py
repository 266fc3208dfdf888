"""Limits and a circuit breaker that contradict each other, or the size of a pool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from assay.fleet.repository_check import RuleFinding, rule
from assay.fleet.repository_draft import RepositoryDraft
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.policy_sections import count_allowed_out


@rule(
    "ASY0221",
    "a breaker that no wave of a pool can open",
    why="All nodes of the pool can fail at once, and automation takes out as many as the limit allows.",
)
def unreachable_breaker(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find pools with fewer nodes than the breaker needs, of which the limits let more than one node be out."""
    sizes = Counter(host.pool for host in draft.hosts if host.settings)
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for path, _, least in policy.breaker.list_shares():
            for pool, size in sorted(sizes.items()):
                if size < least and count_allowed_out(size, policy.limits.pool_percent) > 1:
                    place = draft.find_position(f"LifecyclePolicy/{policy.name}", *path, "min_nodes")
                    message = f"the breaker needs {least} nodes, and pool {pool} has {size}"
                    yield RuleFinding(place, message, f"use at most {size}, or lower limits.pool_percent")


@rule(
    "ASY0222",
    "a breaker that opens after the limit is used up",
    why="Automation has taken out as many nodes as it may before anybody is told that they have one cause.",
)
def late_breaker(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find shares of the breaker above the limit of nodes out, and shares that are written as fractions."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        most = policy.limits.pool_percent
        shares = [((*path, "percent"), percent) for path, percent, _ in policy.breaker.list_shares()]
        for path, percent in [(("limits", "pool_percent"), most), *shares]:
            place, name = draft.find_position(f"LifecyclePolicy/{policy.name}", *path), ".".join(map(str, path))
            if percent < 1:
                message = f"{name} is {percent:g} %: less than one node of a hundred"
                yield RuleFinding(place, message, f"write a percentage: {percent * 100:g} for this fraction")
            elif percent > most >= 1:
                message = f"{name} is {percent:g} %, but automation stops at limits.pool_percent, {most:g} %"
                yield RuleFinding(place, message, f"use at most {most:g}, so that the breaker opens first")
