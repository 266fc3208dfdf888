"""Policies that say nothing of trust, or name pools that no node is in."""

from __future__ import annotations

from collections.abc import Iterator

from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.repository_check import RuleFinding, rule
from assay.declare.rules.dangling_names import suggest_name
from assay.model.specs.lifecycle_policy import LifecyclePolicy


@rule("ASY0411", "a trust step of a pool that does not exist", why="The pool that is meant has another step.")
def unknown_trusted_pool(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find steps of pools without nodes."""
    pools = {host.pool for host in draft.hosts}
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for pool in policy.trust.pools:
            if pool not in pools:
                place = draft.find_position(f"LifecyclePolicy/{policy.name}", "trust", "pools", pool)
                yield RuleFinding(place, f"no node is in pool {pool}", suggest_name(pool, pools))


@rule(
    "ASY0412",
    "a policy without a trust step",
    why="assay only watches: it says what it would do, and does nothing.",
    severity="warning",
)
def missing_trust(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find policies that do not say how far automation may go, such as those from before there were steps."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        if "trust" not in policy.model_fields_set:
            place = draft.find_position(f"LifecyclePolicy/{policy.name}")
            fix = "add `trust: {fleet: watch}`; docs/trust.md says how to raise it"
            yield RuleFinding(place, "it does not say how far automation may go, so assay only watches", fix)
