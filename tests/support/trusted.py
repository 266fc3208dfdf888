"""What the policy of a test says so that assay acts on machines that are no lab: without it, assay only watches."""

from __future__ import annotations

from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.policy_sections import AutomationLimits
from assay.model.specs.trust_rules import TrustRules

TRUSTED = "trust: {fleet: act}\n"
"""A section for the end of a policy in YAML."""


def trusted_policies() -> dict[str, LifecyclePolicy]:
    """Return the policies of a fleet that declares nothing else."""
    limits = AutomationLimits(pool_percent=100, rack_concurrent=100, reboots_per_hour=1000)
    return {"p": LifecyclePolicy.model_construct(name="p", trust=TrustRules(fleet="act"), effects={}, limits=limits)}
