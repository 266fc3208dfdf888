"""A node's line of `assay status --format json`, which `assay explain` has too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from assay.lifecycle.node_state import LostCordon, NodeState
from assay.views.burn_in_status import burn_in_as_json

if TYPE_CHECKING:
    from assay.controller.cache.unknown_jobs import UnknownJobs


def node_status_as_json(
    state: NodeState, returned: Sequence[str] = (), unknown_jobs: UnknownJobs | None = None
) -> dict[str, Any]:
    """Return a node's status; `returned` are notes on parts that were sent back once. Times are ISO 8601 UTC."""
    pending, hold, request = state.pending, state.hold, state.move_request
    return {
        "node": state.node,
        "pool": state.pool,
        "state": state.state,
        "since": state.since,
        "pending": pending
        and {
            "to": pending.to,
            "since": pending.since,
            "waiting_for": list(pending.blockers),
            "because": "; ".join(cause.text for cause in pending.because),
        },
        "held": hold and {"who": hold.who, "reason": hold.reason, "since": hold.at, "until": hold.until},
        "asked": request and {"to": request.to, "who": request.who, "reason": request.reason, "since": request.at},
        "opened": [{"at": lost.at, "reason": lost.reason} for lost in list_current_lost_cordons(state)],
        "returned": list(returned),
        "jobs_unknown": unknown_jobs and {"since": unknown_jobs.since, "reason": unknown_jobs.reason},
        "burn_in": burn_in_as_json(state),
        "because": state.note or state.reason,
    }


def list_current_lost_cordons(state: NodeState) -> list[LostCordon]:
    """Return the cordons that somebody else removed since the node came into its state."""
    return [lost for lost in state.lost_cordons if lost.stay_id == state.stay_id]
