"""How a node stands: its line of `assay status --format json`, and one of eight words.

The colour, the letter and the shape of a node on a page mean that word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from assay.decide.state.node_state import LostCordon, NodeState, OperatorNote, PendingDecision
from assay.decide.trust.record import MoveRequest
from assay.model.facts import extend, fact
from assay.model.faults.fault_record import SCHEDULER_FAULTS
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import format_ago, format_duration, parse_time
from assay.tell.views.burn_in_status import BurnInStatus, make_burn_in_status
from assay.tell.views.incident_story import NO_STORY, NodeStory
from assay.tell.views.next_step import NextStep, is_left_to_people

if TYPE_CHECKING:
    from assay.act.loop.projections import UnknownJobs


@fact
class NodeStatus:
    """The state of one node. Times are ISO 8601 with the offset of UTC."""

    node: str
    """The name of the node."""
    pool: str
    """The pool that the node is in."""
    state: str
    """The state of the lifecycle policy that the node is in."""
    since: str
    """When the node came into this state."""
    pending: PendingDecision | None
    """The move that was decided and still waits; null if there is none."""
    held: OperatorNote | None
    """The hold on the node; null if nobody holds it."""
    asked: MoveRequest | None
    """The order that waits for its turn; null if there is none."""
    opened: tuple[LostCordon, ...]
    """How often it had to be closed and read as open since it came into its state."""
    returned: list[str]
    """Notes on parts of this node that were sent to their vendor once and are back; one text each."""
    jobs_unknown: UnknownJobs | None
    """Why the jobs on the node are not known; null if they are."""
    burn_in: BurnInStatus | None
    """The last burn-in of the node; null if it had none."""
    because: str
    """Why the node is in its state."""
    unread_since: str | None
    """When a node in service was last read, if that is longer ago than the policy allows, "" for never; else null."""
    read_at: str
    """When the node was last read: ISO 8601 UTC; "" for never."""
    incident: str
    """What is wrong with it: its worst open incident; "" without one."""
    next: NextStep
    """Who must act next on the node, and how."""
    scheduler: str
    """How its scheduler keeps it otherwise than its state asks, and who wants that; "" if it does not."""


def make_node_status(
    state: NodeState,
    returned: Sequence[str] = (),
    unknown_jobs: UnknownJobs | None = None,
    story: NodeStory = NO_STORY,
    read_at: str = "",
) -> NodeStatus:
    """Return a node's status; `returned` are notes on parts that were sent back once."""
    return extend(
        NodeStatus,
        state,
        held=state.hold,
        asked=state.move_request,
        opened=tuple(list_current_lost_cordons(state)),
        returned=list(returned),
        jobs_unknown=unknown_jobs,
        burn_in=make_burn_in_status(state),
        because=state.note or state.reason,
        unread_since=story.unread_since,
        read_at=read_at,
        incident=story.incidents[0].happened if story.incidents else "",
        next=story.next,
        scheduler="; ".join(describe_disagreement(state)),
    )


def describe_disagreement(state: NodeState) -> list[str]:
    """Return how a node's scheduler keeps it otherwise than its state asks, and who wants that; [] if it does not."""
    return [fault.detail for fault in state.faults if fault.is_open and fault.fault_class in SCHEDULER_FAULTS]


def list_current_lost_cordons(state: NodeState) -> list[LostCordon]:
    """Return how often a node had to be closed and read as open since it came into its state."""
    return [lost for lost in state.lost_cordons if lost.stay_id == state.stay_id]


def describe_reading(read_at: str, unread_since: str | None, now: datetime) -> str:
    """Return how old what is known of a node is ("" for never), and whether that is too old."""
    last = unread_since or read_at
    if unread_since is None:
        return f"read {format_ago(last, now)}" if last else "not read yet"
    return f"not known: last read {format_ago(last, now)}" if last else "not known yet: never read"


class ServiceCount(NamedTuple):
    """How many nodes serve as far as is known, and how many more are in service and not known."""

    serving: int
    not_known: int


def count_service(nodes: Iterable[tuple[bool, bool]]) -> ServiceCount:
    """Return the count that every surface shows. `nodes`: whether each is in service, and whether it is not known."""
    counts = Counter("not_known" if is_unread else in_service for in_service, is_unread in nodes)
    return ServiceCount(counts[True], counts["not_known"])


def describe_unread(unread: Collection[str], now: datetime) -> str:
    """Return how many nodes are not known, and for how long; "" for none. `unread`: when each was last read."""
    if not unread:
        return ""
    oldest = min(unread)
    since = f"for up to {format_duration(now - parse_time(oldest))}" if oldest else "some never read"
    return f"{len(unread):,} not known ({since})"


Standing = Literal["serving", "closing", "unread", "work", "people", "held", "unseen", "gone"]
STANDINGS: tuple[Standing, ...] = get_args(Standing)
STANDING_WORDS: dict[Standing, str] = {
    "serving": "in service",
    "closing": "in service, closing to new jobs",
    "unread": "in service, not known: no fresh reading",
    "work": "out, assay works on it",
    "people": "out, waits for people",
    "held": "held by a person",
    "unseen": "never observed",
    "gone": "gone for good",
}
STANDING_LETTERS: dict[Standing, str] = {
    "serving": "S",
    "closing": "C",
    "unread": "?",
    "work": "W",
    "people": "P",
    "held": "H",
    "unseen": "U",
    "gone": "G",
}


def find_standing(state: NodeState | None, policy: LifecyclePolicy | None, *, is_unread: bool = False) -> Standing:
    """Return how a node stands; None as `state` for one that was never enrolled. `is_unread`: its last reading is old.

    A state that no policy has counts as waiting for people: nobody says what assay does there.
    """
    if state is None:
        return "unseen"
    if state.hold:
        return "held"
    declared = policy.states.get(state.state) if policy else None
    if declared is None:
        return "people"
    if declared.final:
        return "gone"
    if declared.in_service:
        if is_unread:
            return "unread"
        return "closing" if state.pending else "serving"
    return "people" if is_left_to_people(state, declared) else "work"
