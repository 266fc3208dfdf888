"""What the policy of a test says so that assay acts on machines that are no lab: without it, assay only watches."""

from __future__ import annotations

from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.trust_rules import TrustRules

TRUSTED = "trust: {fleet: act}\n"
"""A section for the end of a policy in YAML."""


def trusted_policies() -> dict[str, LifecyclePolicy]:
    """Return the policies of a fleet that declares nothing else."""
    return {"p": LifecyclePolicy.model_construct(name="p", trust=TrustRules(fleet="act"), effects={})}
