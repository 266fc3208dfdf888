"""Decisions and actions: what should happen to a node, and why. Without pydantic, for readers of history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ActionName = Literal[
    "cordon",
    "uncordon",
    "drain",
    "drain-now",
    "configure",
    "reboot",
    "powercycle",
    "netboot",
    "zap",
    "wipe",
    "burn-in",
    "ticket",
    "dossier",
]
REPAIR_ACTIONS: frozenset[ActionName] = frozenset({"reboot", "powercycle", "netboot", "zap"})
"""Actions after which earlier passes of checks no longer count."""
RESTART_ACTIONS: frozenset[ActionName] = frozenset({"reboot", "powercycle", "netboot"})
"""Actions that count against the policy's `reboots_per_hour`."""
DECLARED_ACTIONS: frozenset[ActionName] = frozenset({"zap", "configure"})
"""Actions that bring a node to what its specs declare."""

PERSON_RULE = "person"
"""The rule name in decisions on a person's request."""
ROLLOUT_RULE = "rollout"
"""The rule name in decisions on the order of a rollout."""
HELD_RULE = "held-back"
"""The rule name of a decision that only cordons a node, while the breaker or a limit holds back its answer."""
FLAPPING_RULE = "flapping"
"""The rule name of a decision that gives a node to people, because its faults come and go again and again."""

CONFIGURE: ActionName = "configure"
"""The action, and the remedy of a decision, that gives a node its settings where it is, also while jobs run there."""
WIPE: ActionName = "wipe"
"""The action that lets the local drives erase themselves. A dossier is made even if it fails: the drives stay here."""
LOAD: ActionName = "burn-in"
"""The action that loads GPUs. Each load has its trust step: of idle nodes, of tests, of searches, of burn-ins."""
CONFIGURE_IDLE = "configure-idle"
"""The remedy of a decision that does so while the node is cordoned and no job runs there."""
CORRECTION_REMEDIES = (CONFIGURE, CONFIGURE_IDLE)

DecisionTiming = Literal["immediate", "pending", "record"]


def find_rule_name(rule: str) -> str:
    """Return the name of a rule as decisions record it: `file:line name`."""
    return rule.rpartition(" ")[2]


@dataclass(frozen=True, slots=True)
class DecisionCause:
    """One reason of a decision.

    Its kind is one of: outcome (id `<run>/<check>[<subject>]`, or `<run>/<phase>` for a phase that passed), fault,
    faults (the ids of further faults, with spaces between), deadline, certified, effect, decision, known (the issue
    that excuses a failure), flapping, repeated, lemon, burn-in, setting (id: its path in the spec). Reasons that held
    something back have the kind person, profile, limit, breaker, foreign, jobs, pause, trust (id: the step and the
    actions), age or machine. The order of a rollout has the kind rollout, a person's yes the kind approved.
    """

    kind: str
    """What kind of reason it is, such as fault, outcome, person, limit or rollout."""
    id: str
    """The record that it refers to."""
    text: str
    """The reason in one line."""

    @property
    def fault_ids(self) -> tuple[str, ...]:
        """The faults that this reason names, none for a reason of another kind."""
        return (self.id,) if self.kind == "fault" else tuple(self.id.split()) if self.kind == "faults" else ()


@dataclass(frozen=True, slots=True)
class Decision:
    """`node` goes from `from_state` to `to_state` by `rule` (`file:line name`), for the reasons in `causes`.

    `id` derives from the node, its stay in `from_state` and the causes, not from the time: the same causes give one
    decision. `timing: pending` waits for the node to be idle, `record` moves nothing. `blockers` lists what a pending
    decision waits for, or (remedy `wait`) what held a move back. Remedy `ticket` asks for a technician.
    """

    id: str
    node: str
    from_state: str
    to_state: str
    timing: DecisionTiming
    rule: str
    remedy: str = ""
    causes: tuple[DecisionCause, ...] = ()
    blockers: tuple[str, ...] = ()
