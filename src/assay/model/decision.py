"""Decisions and actions: what should happen to a node, and why. Without pydantic, for readers of history."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

from assay.model.facts import frozen

ActionName = Literal[
    "cordon",
    "uncordon",
    "drain",
    "drain-now",
    "configure",
    "collect",
    "gpu-reset",
    "reboot",
    "powercycle",
    "poweroff",
    "netboot",
    "zap",
    "wipe",
    "burn-in",
    "ticket",
    "dossier",
]
ActionTrait = Literal["repairs", "restarts", "declared", "disturbs", "closes", "drains", "paperwork", "looks"]
"""What is true of an action:

- `repairs`: earlier passes of checks no longer count after it. `restarts`: it counts against `reboots_per_hour`.
- `declared`: it brings a node to what its specs declare. `disturbs`: it disturbs who works on the node.
- `closes`: the node takes no new jobs after it. `drains`: no job runs there after it.
- `paperwork`: it reaches no machine and no scheduler. A ticket that leaves this host has the trust step of its node.
- `looks`: it only reads the machine, so it waits for no yes, and if it fails the next action follows all the same.
"""


@frozen
class ActionFacts:
    """All that others know of an action: how long it takes, where the hours come from, and its traits."""

    hours: float
    source: str
    traits: tuple[ActionTrait, ...] = ()


ACTIONS: Mapping[str, ActionFacts] = MappingProxyType(
    {
        "cordon": ActionFacts(0, "the scheduler is told; seconds", ("closes",)),
        "uncordon": ActionFacts(0, "the scheduler is told; seconds"),
        "drain": ActionFacts(24, "our own choice: a job's usual wall-time limit of a day", ("closes", "drains")),
        "drain-now": ActionFacts(
            0.25,
            "our own choice: jobs are ended, and get minutes to write a checkpoint",
            ("closes", "drains", "disturbs"),
        ),
        "configure": ActionFacts(0.1, "our own choice: a playbook of a few roles; minutes", ("declared",)),
        "collect": ActionFacts(0.1, "the longest report of a vendor's tool takes minutes", ("looks",)),
        "gpu-reset": ActionFacts(
            0.25,
            "our own choice: a reset takes seconds; the jobs on the GPU get minutes to write a checkpoint",
            ("repairs", "disturbs"),
        ),
        "reboot": ActionFacts(
            0.5, "our own choice: an HGX node needs 10 to 20 min to POST and boot", ("repairs", "restarts", "disturbs")
        ),
        "powercycle": ActionFacts(
            0.75,
            "our own choice: a reboot, and the power supplies' and the BMC's own start",
            ("repairs", "restarts", "disturbs"),
        ),
        "poweroff": ActionFacts(0.1, "our own choice: a system that ends its services needs minutes", ("disturbs",)),
        "netboot": ActionFacts(
            0.75,
            "our own choice: a power cycle, and an image that comes over the network",
            ("repairs", "restarts", "disturbs"),
        ),
        "zap": ActionFacts(
            2,
            "our own choice: seven components with three resets; the default policy gives up at 6 h",
            ("repairs", "declared", "disturbs"),
        ),
        "wipe": ActionFacts(
            1,
            "our own choice: a crypto erase takes seconds, a block erase minutes, an older drive longer",
            ("disturbs",),
        ),
        "burn-in": ActionFacts(0, "the burn-in is started; the soak time counts its hours"),
        "ticket": ActionFacts(0, "paperwork; nothing waits for it", ("paperwork",)),
        "dossier": ActionFacts(0.1, "files are collected; minutes", ("paperwork",)),
    }
)


def list_actions(trait: ActionTrait) -> frozenset[ActionName]:
    """Return the actions that have a trait."""
    return frozenset(name for name in get_args(ActionName) if trait in ACTIONS[name].traits)


REPAIR_ACTIONS = list_actions("repairs")
RESTART_ACTIONS = list_actions("restarts")
DECLARED_ACTIONS = list_actions("declared")
DISTURBING_ACTIONS = list_actions("disturbs")
CLOSING_ACTIONS = list_actions("closes")
DRAIN_ACTIONS = list_actions("drains")
PAPERWORK = list_actions("paperwork")
LOOKING_ACTIONS = list_actions("looks")
FREE_ACTIONS = PAPERWORK | LOOKING_ACTIONS
"""What no decision waits for. At watch, assay does not even look: vendors' tools load what they look at."""

PERSON_RULE = "person"
"""The rule name in decisions on a person's request."""
ROLLOUT_RULE = "rollout"
"""The rule name in decisions on the order of a rollout."""
REPLACEMENT_RULE = "replacement"
"""The rule name in decisions by which a spare takes the place of a node that is out for too long."""
HAND_OVER = "hand-over"
"""The kind of a cause that names a proof that nothing of a former customer is left on a node, or says what lacks; also
the rule name of decisions that the next customer of a node asks for."""
HELD_RULE = "held-back"
"""The rule name of a decision that only cordons a node, while the breaker or a limit holds back its answer."""
STATE_CAUSE = "state"
"""The kind of the cause of a cordon that the node's state alone asks for: nothing has closed the node yet."""
FLAPPING_RULE = "flapping"
"""The rule name of a decision that gives a node to people, because its faults come and go again and again."""

CONFIGURE: ActionName = "configure"
"""The action, and the remedy of a decision, that gives a node its settings where it is, also while jobs run there."""
COLLECT: ActionName = "collect"
"""The action that keeps what a vendor asks for, before a restart destroys it."""
WIPE: ActionName = "wipe"
"""The action that lets the local drives erase themselves. A dossier is made even if it fails: the drives stay here."""
GPU_RESET: ActionName = "gpu-reset"
"""The action that resets GPUs. It mends these GPUs and nothing else of the node."""
LOAD: ActionName = "burn-in"
"""The action that loads GPUs. Each load has its trust step: of idle nodes, of tests, of searches, of burn-ins."""
CONFIGURE_IDLE = "configure-idle"
"""The remedy of a decision that does so while the node is cordoned and no job runs there."""
CORRECTION_REMEDIES = (CONFIGURE, CONFIGURE_IDLE)

DecisionTiming = Literal["immediate", "pending", "record"]


def find_rule_name(rule: str) -> str:
    """Return the name of a rule as decisions record it: `file:line name`."""
    return rule.rpartition(" ")[2]


@frozen
class DecisionCause:
    """One reason of a decision.

    Its kind is one of: outcome (id `<run>/<check>[<subject>]`, or `<run>/<phase>` for a phase that passed), fault,
    faults (the ids of further faults, with spaces between), deadline, certified, effect, decision, known (the issue
    that excuses a failure), flapping, repeated, lemon, burn-in, setting (id: its path in the spec), replaced
    (the stay of a node whose place a spare takes), pool, hand-over (what proves that nothing of a former customer is
    left: the ids of effect and outcomes, with spaces between), customer. Reasons that held
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


@frozen
class ReplacedNode:
    """The node whose place a spare takes, its serial number, and since when it has been out (ISO 8601 UTC)."""

    node: str
    serial: str
    since: str


@frozen
class Decision:
    """`node` goes from `from_state` to `to_state` by `rule` (`file:line name`), for the reasons in `causes`.

    `id` derives from the node, its stay in `from_state` and the causes, not from the time: the same causes give one
    decision. `timing: pending` waits for the node to be idle, `record` moves nothing. `blockers` lists what a pending
    decision waits for, or (remedy `wait`) what held a move back. Remedy `ticket` asks for a technician.
    `replaces`: whose place `node` takes. `customer`: to whom the decision opens the node, by the inventory.
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
    replaces: ReplacedNode | None = None
    customer: str = ""
