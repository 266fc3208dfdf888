"""How hard the fleet's policy wants an action to be tried."""

from __future__ import annotations

from typing import cast

from assay.model.action import Action
from assay.model.effort import Effort
from assay.model.fleet import Fleet

USUAL = Effort()


def effort_of(fleet: Fleet, action: str) -> Effort:
    """Return what the lifecycle policy says of an action, else what is usual."""
    policy = next(iter(fleet.policies.values()), None)
    return policy.effects.get(cast(Action, action), USUAL) if policy else USUAL
