"""How a node stands: its line of `assay status --format json`, and one of seven words.

The colour, the letter and the shape of a node on a page mean that word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from assay.decide.state.node_state import LostCordon, NodeState
from assay.model.facts import fact
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.tell.views.burn_in_status import BurnInStatus, make_burn_in_status

if TYPE_CHECKING:
    from assay.act.loop.projections import UnknownJobs


@fact
class PendingMove:
    """A move that was decided and still waits."""

    to: str
    """The state that the node will go to."""
    since: str
    """When the move was decided."""
    waiting_for: list[str]
    """The jobs that must end first."""
    because: str
    """Why the node will move, causes separated by "; "."""


@fact
class CurrentHold:
    """A hold: automation observes the node but does not act on it."""

    who: str
    """Who holds the node."""
    reason: str
    """Why, in that person's words."""
    since: str
    """When the hold began."""
    until: str
    """When the hold ends by itself; "" if only `assay release` ends it."""


@fact
class RequestedMove:
    """A person's order that the policy has not carried out yet."""

    to: str
    """The state that the node shall go to."""
    who: str
    """Who gave the order."""
    reason: str
    """Why, in that person's words."""
    since: str
    """When the order was given."""


@fact
class OpenedCordon:
    """A cordon of assay that somebody else has removed."""

    at: str
    """When assay saw that the cordon was gone."""
    reason: str
    """What assay saw."""


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
    pending: PendingMove | None
    """The move that was decided and still waits; null if there is none."""
    held: CurrentHold | None
    """The hold on the node; null if nobody holds it."""
    asked: RequestedMove | None
    """The order that waits for its turn; null if there is none."""
    opened: list[OpenedCordon]
    """The cordons that somebody else removed since the node came into its state."""
    returned: list[str]
    """Notes on parts of this node that were sent to their vendor once and are back; one text each."""
    jobs_unknown: UnknownJobs | None
    """Why the jobs on the node are not known; null if they are."""
    burn_in: BurnInStatus | None
    """The last burn-in of the node; null if it had none."""
    because: str
    """Why the node is in its state."""


def make_node_status(
    state: NodeState, returned: Sequence[str] = (), unknown_jobs: UnknownJobs | None = None
) -> NodeStatus:
    """Return a node's status; `returned` are notes on parts that were sent back once."""
    pending, hold, request = state.pending, state.hold, state.move_request
    return NodeStatus(
        node=state.node,
        pool=state.pool,
        state=state.state,
        since=state.since,
        pending=(
            PendingMove(
                to=pending.to,
                since=pending.since,
                waiting_for=list(pending.blockers),
                because="; ".join(cause.text for cause in pending.because),
            )
            if pending
            else None
        ),
        held=CurrentHold(who=hold.who, reason=hold.reason, since=hold.at, until=hold.until) if hold else None,
        asked=(
            RequestedMove(to=request.to, who=request.who, reason=request.reason, since=request.at) if request else None
        ),
        opened=[OpenedCordon(at=lost.at, reason=lost.reason) for lost in list_current_lost_cordons(state)],
        returned=list(returned),
        jobs_unknown=unknown_jobs,
        burn_in=make_burn_in_status(state),
        because=state.note or state.reason,
    )


def list_current_lost_cordons(state: NodeState) -> list[LostCordon]:
    """Return the cordons that somebody else removed since the node came into its state."""
    return [lost for lost in state.lost_cordons if lost.stay_id == state.stay_id]


Standing = Literal["serving", "closing", "work", "people", "held", "unseen", "gone"]
STANDINGS: tuple[Standing, ...] = get_args(Standing)
STANDING_WORDS: dict[Standing, str] = {
    "serving": "in service",
    "closing": "in service, closing to new jobs",
    "work": "out, assay works on it",
    "people": "out, waits for people",
    "held": "held by a person",
    "unseen": "never observed",
    "gone": "gone for good",
}
STANDING_LETTERS: dict[Standing, str] = {
    "serving": "S",
    "closing": "C",
    "work": "W",
    "people": "P",
    "held": "H",
    "unseen": "U",
    "gone": "G",
}


def find_standing(state: NodeState | None, policy: LifecyclePolicy | None) -> Standing:
    """Return how a node stands; None as `state` for one that was never enrolled.

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
        return "closing" if state.pending else "serving"
    waits_for_people = state.note or (declared.certified_to and not declared.until_idle)
    return "people" if waits_for_people else "work"
