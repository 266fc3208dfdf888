"""The shape of why a node is in its state: what `assay explain --format json` and the API answer."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from assay.decide.rollouts.node_progress import ProgressKind
from assay.decide.rollouts.rollout_history import RolloutStatus
from assay.decide.state.node_state import EffectStatus
from assay.model.decision import DecisionTiming
from assay.model.outcome import CheckVerdict
from assay.model.specs.fault_catalog import FaultBlame, FaultSeverity
from assay.tell.views.node_status import NodeStatus
from assay.tell.views.node_sync import NodeSyncStatus
from assay.tell.views.open_breakers import BreakerStatus
from assay.tell.views.trust_view import NodeTrust


class CodeMeaning(TypedDict, total=False):
    """What a fault class means; missing where the fault catalogue has no such class."""

    meaning: str
    """What the fault class means."""
    investigate: str
    """What to look at; "" if the catalogue does not say."""
    sub_code: str
    """The meaning of an NVLink sub-code; "" without one."""


class ExplainedOutcome(TypedDict):
    """One check on one subject in a run."""

    run: str
    """The id of the run."""
    check: str
    """The id of the check."""
    subject: str
    """What was judged: the node or a part of it."""
    verdict: CheckVerdict
    """The verdict."""
    reason: str
    """Why the verdict is so; "" for a pass."""
    fault: str
    """The fault class that a failure means; "" if none is named."""
    evidence: str
    """The digest of the evidence that was judged; "" without any."""
    evidence_at: str
    """When that evidence was collected: ISO 8601 UTC; "" without any."""


ExplainedCause = TypedDict(
    "ExplainedCause",
    {
        "kind": str,
        "id": str,
        "text": str,
        "class": NotRequired[str],
        "severity": NotRequired[FaultSeverity],
        "blame": NotRequired[FaultBlame],
        "count": NotRequired[int],
        "first_seen": NotRequired[str],
        "last_seen": NotRequired[str],
        "detail": NotRequired[str],
        "run": NotRequired[str],
        "check": NotRequired[str],
        "subject": NotRequired[str],
        "verdict": NotRequired[CheckVerdict],
        "reason": NotRequired[str],
        "fault": NotRequired[str],
        "evidence": NotRequired[str],
        "evidence_at": NotRequired[str],
        "checks": NotRequired[list[ExplainedOutcome]],
        "meaning": NotRequired[str],
        "investigate": NotRequired[str],
        "sub_code": NotRequired[str],
    },
)
ExplainedCause.__doc__ = """One reason of a decision.

- `kind`: what kind of reason it is, such as fault, outcome, person, limit or rollout. `id`: the record that it refers
  to. `text`: the reason in one line.
- `class`: the fault class; only for a fault. `severity`: how serious the fault is; only for a fault. `blame`: what is
  to blame; only for a fault. `count`: how often the fault was seen; only for a fault. `first_seen`: when it was first
  seen (ISO 8601 UTC); only for a fault. `last_seen`: when it was last seen; only for a fault. `detail`: what was read;
  only for a fault.
- `run`: the id of the run; only for an outcome. `check`: the id of the check; only for an outcome. `subject`: the node
  or the part; only for a fault or an outcome. `verdict`: the verdict; only for an outcome. `reason`: why the verdict is
  so; only for an outcome. `fault`: the fault class that a failure means; only for an outcome. `evidence`: the digest of
  the judged evidence; only for an outcome. `evidence_at`: when it was collected (ISO 8601 UTC); only for an outcome.
- `checks`: the outcomes of a phase that has passed; only for such a phase.
- `meaning`: what the fault class means, where the catalogue has it. `investigate`: what to look at, "" if the catalogue
  does not say. `sub_code`: the meaning of an NVLink sub-code, "" without one.
"""


class ExplainedEffect(TypedDict):
    """A change that the decision asked for, and how far it is."""

    id: str
    """The id of the effect."""
    action: str
    """What is done, such as cordon, drain or reboot."""
    standing: EffectStatus
    """How far it is. Only verified means that it was read back."""
    at: str
    """When that changed last: ISO 8601 UTC."""
    reason: str
    """Why it failed, or what proves it; "" if nothing is to be said."""


ExplainedDecision = TypedDict(
    "ExplainedDecision",
    {
        "at": str,
        "decision": str,
        "from": str,
        "to": str,
        "timing": DecisionTiming,
        "rule": str,
        "remedy": str,
        "blockers": list[str],
        "because": list[ExplainedCause],
        "effects": list[ExplainedEffect],
    },
)
ExplainedDecision.__doc__ = """A decision about the node, with its causes and effects.

- `at`: when it was decided (ISO 8601 UTC). `decision`: its id. `from`: the state before. `to`: the state after.
- `timing`: immediate, pending (it waits until the node is idle) or record (it moves nothing).
- `rule`: the rule of the policy, as `file:line name`. `remedy`: what is done, "" if nothing besides the move.
- `blockers`: what it waits for, or what held a move back. `because`: its reasons. `effects`: what it asked for.
"""


class RequiredPhase(TypedDict):
    """A phase of checks that the node's state requires."""

    phase: str
    """The name of the phase."""
    passed: int
    """How many of its checks have passed."""
    excused: int
    """How many failures a known issue excuses."""
    lacks: list[str]
    """What has not passed, one text each; the phase has passed if nothing is here."""


class UndecidedFailure(CodeMeaning):
    """A failure that decides nothing."""

    check: str
    """The id of the check."""
    subject: str
    """The node or the part."""
    reason: str
    """Why the check fails."""
    fault: str
    """The fault class that the failure means; "" if none is named."""
    run: str
    """The id of the run."""
    why: str
    """Why it decides nothing: it is only observed, or a known issue excuses it."""


UndecidedFault = TypedDict(
    "UndecidedFault",
    {
        "class": str,
        "severity": FaultSeverity,
        "subject": str,
        "count": int,
        "first_seen": str,
        "last_seen": str,
        "detail": str,
        "meaning": NotRequired[str],
        "investigate": NotRequired[str],
        "sub_code": NotRequired[str],
    },
)
UndecidedFault.__doc__ = """An open fault that no round has decided on yet.

- `class`: the fault class. `severity`: how serious it is. `subject`: the node or the part. `count`: how often it was
  seen. `first_seen`: when it was first seen (ISO 8601 UTC). `last_seen`: when it was last seen.
- `detail`: what was read.
- `meaning`: what the fault class means, where the catalogue has it. `investigate`: what to look at, "" if the catalogue
  does not say. `sub_code`: the meaning of an NVLink sub-code, "" without one.
"""


class AgentStatus(TypedDict):
    """The agent on the node, as it described itself last."""

    heard: str
    """When the agent last answered: ISO 8601 UTC."""
    received: int
    """How many items it has delivered."""
    cpu_s: float
    """How many CPU seconds it has used."""
    rss_bytes: int
    """How many bytes of memory it holds."""
    buffered: int
    """How many items wait for delivery."""
    buffered_bytes: int
    """How many bytes these take."""
    dropped: dict[str, int]
    """How many items were lost before delivery, by cause."""
    missed: int
    """How many kernel lines were overwritten before they were read."""
    log: str
    """Why there is no kernel log; "" if there is one."""
    nvml: str
    """Why there are no GPU events; "" if there are."""
    words: list[str]
    """The words that the controller looks for in kernel lines, besides the agent's own."""


class RolloutOfNode(TypedDict):
    """The active rollout, and how far it is with this node."""

    id: str
    """The id of the rollout."""
    base: str
    """The commit before the change."""
    commit: str
    """The commit with the change."""
    status: RolloutStatus
    """How the rollout stands."""
    nodes: int
    """How many nodes take part."""
    proven: int
    """How many of them serve again and have passed their checks."""
    progress: ProgressKind
    """How far this node is."""
    why: str
    """What it waits for, what failed, or what proves it; "" if nothing is to be said."""
    change: str
    """What changes on this node."""
    waits_for: str
    """What the rollout as a whole waits for; "" for nothing."""


class LemonReasonAnswer(TypedDict):
    """One event that counts."""

    what: str
    """What counts."""
    at: str
    """When: ISO 8601 UTC."""
    weight: float
    """How many points it counts."""
    because: str
    """What was behind it."""


class LemonStatus(TypedDict):
    """What the node has cost in its life, as points."""

    points: float
    """The sum of all reasons."""
    threshold: float
    """From how many points on the node is a lemon."""
    is_lemon: bool
    """Whether it has reached them."""
    reasons: list[LemonReasonAnswer]
    """The reasons, oldest first."""
    summary: str
    """The same in one line."""


class NodeSyncWithRemedies(NodeSyncStatus):
    """How the node compares with the fleet repository, and what the policy does about it."""

    remedies: list[str]
    """What the policy does about the differences of a drifted node, one text for each class of differences."""


class ExplainAnswer(NodeStatus):
    """Why a node is in its state, with the evidence. Times are ISO 8601 with the offset of UTC."""

    chain: list[ExplainedDecision]
    """The last decisions about the node, oldest first."""
    requires: list[RequiredPhase]
    """The phases of checks that the node's state requires."""
    undecided: list[UndecidedFailure]
    """Failures that decide nothing."""
    told: list[UndecidedFault]
    """Open faults that no round has decided on yet."""
    agent: AgentStatus | None
    """The agent on the node; null if it has never had one."""
    breaker: BreakerStatus | None
    """The circuit breaker that holds its answer back; null if none does."""
    rollout: RolloutOfNode | None
    """The active rollout with this node; null without one."""
    lemon: LemonStatus | None
    """Its lemon score; null if the policy has none."""
    trust: NodeTrust | None
    """How far automation may go with it, and what waits for a person; null without one policy."""
    sync: NodeSyncWithRemedies | None
    """How it compares with the fleet repository; null if the inventory no longer has it, or no policy says so."""
