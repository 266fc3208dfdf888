"""Cordons in Slurm: why no job starts on a node, and the orders for scontrol that close and open nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from assay.adapters.slurm.slurm_client import SlurmClient, read_user_name
from assay.adapters.slurm.slurm_json import SlurmNode
from assay.model.cordon_ownership import display_reason, is_our_reason, is_untampered, prefix_reason, tag_reason

RESERVATION_PREFIX = "assay-suspicious-"
RESERVATION_FLAGS = "maint,ignore_jobs"
CLOSED_NODE_STATES = ("DOWN", "FAIL", "ERROR", "INVAL", "FUTURE")
"""Slurm starts no job on the node, even if it is not drained."""
SELF_CLEARING_REASONS = (
    "Not responding",
    "Node unexpectedly rebooted",
    "batch job complete failure",
    "ResumeTimeout reached",
)
"""How reasons start with which slurmctld itself sets a node DOWN. It clears them when the node is back."""


def find_slurm_cordon(node: SlurmNode) -> str:
    """Return why no job starts on the node, "" if jobs do: our reasons with our prefix, others' as they are."""
    reason, closed = display_reason(node.reason, node.reason_set_by_user), _find_closed_state(node)
    if "DRAIN" in node.states or (closed and is_our_reason(display_reason(node.reason))):
        return reason or "drained without a reason"
    return f"{closed} in Slurm: {reason or 'no reason is given'}" if closed else ""


def is_closed_in_slurm(node: SlurmNode) -> bool:
    """Say whether a person, or assay, closed the node.

    A node that slurmctld itself set DOWN does not count: it opens again once it answers, and jobs would start.
    """
    if "DRAIN" in node.states:
        return True
    return bool(_find_closed_state(node)) and not node.reason.startswith(SELF_CLEARING_REASONS)


def _find_closed_state(node: SlurmNode) -> str:
    return next((state for state in CLOSED_NODE_STATES if state in node.states), "")


def make_drain_orders(reasons: Iterable[tuple[SlurmNode, str]]) -> Iterable[str]:
    """Return one order for scontrol for each reason."""
    names_by_reason = defaultdict[str, list[str]](list)
    for node, reason in reasons:
        names_by_reason[tag_reason(reason)].append(node.name)
    return (
        f'update nodename={",".join(names)} state=drain reason="{reason}"' for reason, names in names_by_reason.items()
    )


def list_reserved_nodes(client: SlurmClient) -> set[str]:
    """Return the nodes that have a reservation of ours, by its name."""
    lines = client.read_lines("scontrol", "--oneliner", "show", "reservation")
    names = [line.split()[0].removeprefix("ReservationName=") for line in lines if line]
    return {name.removeprefix(RESERVATION_PREFIX) for name in names if name.startswith(RESERVATION_PREFIX)}


def read_reservation_reason(node: SlurmNode) -> str:
    """Return the reason of a node's reservation."""
    return display_reason(node.comment) if is_untampered(node.comment) else prefix_reason("suspicious")


def make_reservation_orders(reasons: Iterable[tuple[SlurmNode, str]]) -> Iterator[str]:
    """Yield the orders for scontrol that reserve nodes, each for its reason."""
    for node, reason in reasons:
        if not node.comment or is_untampered(node.comment):
            yield f'update nodename={node.name} comment="{tag_reason(reason)}"'
        what = f"nodes={node.name} users={read_user_name()} starttime=now duration=infinite flags={RESERVATION_FLAGS}"
        yield f"create reservationname={RESERVATION_PREFIX}{node.name} {what}"


def make_release_orders(node: SlurmNode) -> Iterator[str]:
    """Yield the orders for scontrol that delete a node's reservation, and its reason if it is ours."""
    yield f"delete reservation={RESERVATION_PREFIX}{node.name}"
    if is_untampered(node.comment):
        yield f"update nodename={node.name} comment="
