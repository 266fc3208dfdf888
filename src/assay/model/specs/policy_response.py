"""The response of a policy to a fault, without any node's history: for comparing policies, not for deciding."""

from __future__ import annotations

from assay.model.decision import CONFIGURE, DecisionTiming
from assay.model.facts import frozen
from assay.model.faults.fault_record import FaultBlame, FaultSeverity, Remedy
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.lifecycle_policy import LifecyclePolicy


@frozen
class PolicyResponse:
    """The first response of a policy: the rule's name, and the state of the ladder's first rung, "" for a record.

    `at_once`, `when_idle`: the settings that a node in service gets where it is.
    """

    rule: str
    """The name of the rule."""
    timing: DecisionTiming
    """Whether it moves the node at once, when it is idle (pending), or not at all (record)."""
    remedy: str
    """What is done; "" for nothing besides the move."""
    to: str = ""
    """The state that the node goes to; "" for a record."""
    at_once: tuple[str, ...] = ()
    when_idle: tuple[str, ...] = ()

    @property
    def moves_node(self) -> bool:
        """Whether it moves the node to another state, at once or when it is idle."""
        return self.timing != "record"

    def describe_corrections(self) -> str:
        """Return which settings a node in service gets when."""
        lists = ((self.at_once, "at once"), (self.when_idle, "when idle"))
        return ", ".join(f"{', '.join(settings)} {when}" for settings, when in lists if settings)

    def __str__(self) -> str:
        if self.moves_node:
            return f"{self.remedy}, to {self.to}, {'at once' if self.timing == 'immediate' else 'when idle'}"
        if self.remedy == CONFIGURE:
            return f"brought in service: {self.describe_corrections() or 'no setting'}; anything else: ticket"
        return {"none": "noted"}.get(self.remedy, f"noted, {self.remedy}")


def respond_to_class(
    policy: LifecyclePolicy, catalog: FaultCatalog, state: str, fault_class: str, in_use: bool
) -> PolicyResponse:
    """Return the response to a class of faults, with the catalogue's treatment, on a node in `state`."""
    treatment = catalog.find_treatment(fault_class)
    severity, blame, remedy = treatment.severity, treatment.blame, treatment.remedy
    return respond_to_fault(policy, state, fault_class, severity, blame, remedy, in_use)


def respond_to_fault(
    policy: LifecyclePolicy,
    state: str,
    fault_class: str,
    severity: FaultSeverity,
    blame: FaultBlame,
    remedy: Remedy,
    in_use: bool,
) -> PolicyResponse:
    """Return the response to one fault. A move without an edge in the policy is a record, as it is in decisions."""
    name, rule = policy.find_fault_rule(state, fault_class, severity, blame, in_use)
    if rule.remedy == "configure":
        at_once, idle = tuple(policy.corrections.at_once), tuple(policy.corrections.idle)
        if rule.timing == "pending":
            at_once, idle = (), (*at_once, *idle)
        return PolicyResponse(name, "record", CONFIGURE, "", at_once, idle)
    wanted: Remedy = remedy if rule.remedy == "class" else rule.remedy
    rung = policy.ladder.rungs.get(wanted)
    to = rule.to or (rung.to if rung else "")
    if rule.timing == "record" or not to or not policy.has_edge(state, to):
        return PolicyResponse(name, "record", wanted)
    return PolicyResponse(name, rule.timing, wanted, to)
