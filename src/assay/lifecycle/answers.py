"""What a policy says to a class of faults, before any node's history: for comparing policies, not for deciding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.model.decision import Timing
from assay.model.faults import Blame, FaultCatalog, Remedy, Severity
from assay.model.policy import LifecyclePolicy


@dataclass(frozen=True, slots=True)
class Answer:
    """The first answer of a policy: `rule` by name, and `to` of the ladder's first step. `to` is "" for a record."""

    rule: str
    timing: Timing
    remedy: str
    to: str = ""

    @property
    def moves(self) -> bool:
        """Whether it takes the node to another state, at once or when it is idle."""
        return self.timing != "record"

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        if self.moves:
            return f"{self.remedy}, to {self.to}, {'at once' if self.timing == 'immediate' else 'when idle'}"
        return {"none": "noted"}.get(self.remedy, f"noted, {self.remedy}")


def answer(policy: LifecyclePolicy, catalog: FaultCatalog, state: str, fault_class: str, in_use: bool) -> Answer:
    """Return the answer to a class, as the catalogue treats it, on a node in `state`."""
    treatment = catalog.treatment(fault_class)
    known = (treatment.severity, treatment.blame, treatment.remedy)
    return answer_to(policy, state, fault_class, *known, in_use)


def answer_to(
    policy: LifecyclePolicy,
    state: str,
    fault_class: str,
    severity: Severity,
    blame: Blame,
    remedy: Remedy,
    in_use: bool,
) -> Answer:
    """Return the answer to one fault. A move that the policy draws no edge for is a record, as when deciding."""
    name, rule = policy.answer(state, fault_class, severity, blame, in_use)
    wanted: Remedy = remedy if rule.remedy == "class" else rule.remedy
    rung = policy.ladder.rungs.get(wanted)
    to = rule.to or (rung.to if rung else "")
    if rule.timing == "record" or not to or not policy.may_go(state, to):
        return Answer(name, "record", wanted)
    return Answer(name, rule.timing, wanted, to)
