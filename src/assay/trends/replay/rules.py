"""What a replay goes by: a policy, the fault catalogue, the profiles, and how long things take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from assay.model.checks import Check, Phase
from assay.model.faults import FaultCatalog
from assay.model.policy import LifecyclePolicy
from assay.model.profile import ManagementProfile
from assay.trends.replay.pace import Pace, Span


@dataclass(frozen=True)
class Rules:
    """`lines` are those of `Fleet.lines`, with the policy's own, so that a decision names its rule's line."""

    policy: LifecyclePolicy
    catalog: FaultCatalog
    profiles: Mapping[str, ManagementProfile]
    pace: Pace
    lines: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @cached_property
    def home(self) -> str:
        """Where a node starts that no inventory knows: `production`, or what the policy has in its place."""
        serving = [name for name, state in self.policy.states.items() if state.in_service]
        return "production" if "production" in serving else serving[0]

    @cached_property
    def checks(self) -> dict[Phase, Check]:
        """One check for each phase that a state requires: the suites of a fleet, as far as a history can tell."""
        wanted = [want for state in self.policy.states.values() for want in state.requires]
        active = {want.phase for want in wanted if want.active}
        return {phase: _check(phase, phase in active) for phase in sorted({want.phase for want in wanted})}

    def verifying(self, phases: list[Phase]) -> Span:
        """Return how long the suites of these phases take."""
        return self.pace.suites if any(self.checks[phase].active for phase in phases) else self.pace.look


def _check(phase: Phase, active: bool) -> Check:
    return Check(id=f"suites/{phase}/replayed.py::test_all", subject="node", phases=[phase], active=active)
