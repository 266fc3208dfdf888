"""How far automation may go: it watches, it suggests, or it acts. Set for the fleet, for a pool, for an action."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from assay.model.decision import ActionName
from assay.model.facts import frozen
from assay.model.specs.spec_document import StrictModel

TrustStep = Literal["watch", "suggest", "act"]
STEPS: tuple[TrustStep, ...] = ("watch", "suggest", "act")


@frozen
class TrustSetting:
    """A step, the dotted path of the setting that gives it, and the place of that line, "" where nobody knows it."""

    step: TrustStep
    path: str
    where: str = ""

    def __str__(self) -> str:
        """Return the step and its line for people."""
        return f"{self.step} ({self.where or self.path})"


class TrustRules(StrictModel):
    """How far automation goes. `watch`: it only says what it would do. `suggest`: a person says yes first. `act`.

    - `fleet`: the step of pools and actions without a line of their own. `lab`: the step of everything in the lab.
    - `pools`, `actions`: the step of a pool, and of an action in all pools. If an action in a pool has both, the lower
      holds; if it has one, that holds. So `fleet: watch` with `actions: {cordon: act}` only cordons, and
      `pools: {a: act}` with `actions: {zap: suggest}` does all in pool `a` but flash.
    - A decision has the lowest step of its actions.

    `order_hours`: an order or a yes that has not begun by then waits for a person. `rollout_hours`: the same for
    rollouts.
    """

    fleet: TrustStep = "watch"
    lab: TrustStep = "act"
    pools: dict[str, TrustStep] = Field(default={})
    actions: dict[ActionName, TrustStep] = Field(default={})
    order_hours: float = Field(default=1, gt=0, le=8760)
    rollout_hours: float = Field(default=24, gt=0, le=8760)


@dataclass(frozen=True)
class Trust:
    """The rules of a fleet with the lines where they stand: `lines` is `Fleet.lines`, `policy` the policy's name.

    The one place that says how far automation may go: decisions, effects and everything else that reaches out ask it.
    """

    rules: TrustRules
    is_lab: bool = False
    policy: str = ""
    lines: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether automation acts on every node, with every action."""
        rules = self.rules
        steps = {rules.lab} if self.is_lab else {rules.fleet, *rules.pools.values(), *rules.actions.values()}
        return steps == {"act"}

    def find(self, pool: str = "", actions: Collection[str] = ()) -> TrustSetting:
        """Return the lowest step of these actions in a pool, without actions that of the pool, "" for the fleet."""
        if self.is_lab:
            return self._at(self.rules.lab, "lab")
        steps: dict[str, TrustStep] = dict(self.rules.actions.items())
        own = [self._at(self.rules.pools[pool], f"pools.{pool}")] if pool in self.rules.pools else []
        others = [
            [*own, *([self._at(steps[action], f"actions.{action}")] if action in steps else [])] for action in actions
        ]
        fleet = self._at(self.rules.fleet, "fleet")
        return _lowest([_lowest(each or [fleet]) for each in others or [own]])

    def _at(self, step: TrustStep, path: str) -> TrustSetting:
        kind, full = f"LifecyclePolicy/{self.policy}", f"trust.{path}"
        return TrustSetting(step, full, self.lines.get((kind, full), self.lines.get((kind, ""), "")))


def _lowest(settings: Collection[TrustSetting]) -> TrustSetting:
    return min(settings, key=lambda setting: STEPS.index(setting.step))


TRUSTED = Trust(TrustRules(fleet="act"))
"""Automation acts."""
