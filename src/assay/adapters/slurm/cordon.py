"""Cordons and notices in Slurm: why no job starts on a node, and the orders for scontrol that close and open nodes.

A notice is in the comment of a node that is out of service; with `slurm_cordon: reservation`, the comment has the
reason of our reservation, and the notice is in `extra`. It has our prefix, its own words and our tag
(model/cordon_ownership.py): whoever edits it owns it. A comment of somebody else stays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from assay.adapters.scheduler import NodeNotice, PlannedWindow
from assay.adapters.slurm.client import SlurmClient, SlurmNode, read_user_name
from assay.model.cordon_ownership import (
    REASON_PREFIX,
    display_reason,
    is_our_reason,
    is_untampered,
    prefix_reason,
    tag_reason,
)
from assay.model.text.lists import expand_node_set

UNKNOWN_NODE = "Slurm does not know this node"
LAST_WEIGHT = 1_000_000
"""Jobs come last to a node whose weight has so much more."""
NOTICE_PREFIX = f"{REASON_PREFIX} for customers: "
NoticeField = Literal["comment", "extra"]
RESERVATION_PREFIX = "assay-suspicious-"
WINDOW_PREFIX = "assay-planned-"
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


def read_reservations(client: SlurmClient, prefix: str) -> dict[str, dict[str, str]]:
    """Return the fields of the reservations whose names begin so, by the rest of their names."""
    lines = client.read_lines("scontrol", "--oneliner", "show", "reservation")
    records = [dict(word.partition("=")[::2] for word in line.split()) for line in lines]
    ours = [fields for fields in records if fields.get("ReservationName", "").startswith(prefix)]
    return {fields["ReservationName"].removeprefix(prefix): fields for fields in ours}


def read_windows(client: SlurmClient) -> dict[str, PlannedWindow]:
    """Return the windows that are reserved for planned work, by the ids of their operations."""
    return {
        ident: PlannedWindow(expand_node_set(fields["Nodes"]), int(fields["StartTime"]), int(fields["EndTime"]))
        for ident, fields in read_reservations(client, WINDOW_PREFIX).items()
    }


def list_unreserved(reserved: Mapping[str, PlannedWindow], windows: Mapping[str, PlannedWindow]) -> list[str]:
    """Return which windows are not reserved as they are, or are reserved still though nobody waits for them."""
    return [ident for ident, window in windows.items() if reserved.get(ident) != (window if window.nodes else None)]


def make_window_orders(
    reserved: Mapping[str, PlannedWindow], windows: Mapping[str, PlannedWindow], now: float
) -> Iterator[str]:
    """Yield the orders for scontrol that reserve windows, change and delete them. Slurm moves none that has begun."""
    for ident in list_unreserved(reserved, windows):
        name, wanted, known = f"{WINDOW_PREFIX}{ident}", windows[ident], reserved.get(ident)
        moves = known is None or known.starts_at != wanted.starts_at
        if known and (not wanted.nodes or (moves and known.starts_at <= now)):
            yield f"delete reservation={name}"
            known = None
        if wanted.nodes:
            order = "update" if known else f"create users={read_user_name()} flags={RESERVATION_FLAGS}"
            start = f"starttime=uts{wanted.starts_at} " if moves else ""
            yield f"{order} reservationname={name} nodes={','.join(wanted.nodes)} {start}endtime=uts{wanted.ends_at}"


def read_reservation_reason(node: SlurmNode) -> str:
    """Return the reason of a node's reservation."""
    return display_reason(node.comment) if is_untampered(node.comment) else prefix_reason("suspicious")


def make_reservation_orders(reasons: Iterable[tuple[SlurmNode, str]]) -> Iterator[str]:
    """Yield the orders for scontrol that reserve nodes, each for its reason."""
    for node, reason in reasons:
        if not node.comment or is_untampered(node.comment):
            yield f'update nodename={node.name} comment="{tag_reason(reason)}"'
        options = f"users={read_user_name()} starttime=now duration=infinite flags={RESERVATION_FLAGS}"
        yield f"create reservationname={RESERVATION_PREFIX}{node.name} nodes={node.name} {options}"


def make_release_orders(node: SlurmNode) -> Iterator[str]:
    """Yield the orders for scontrol that delete a node's reservation, and its reason if it is ours."""
    yield f"delete reservation={RESERVATION_PREFIX}{node.name}"
    if is_untampered(node.comment):
        yield f"update nodename={node.name} comment="


def is_our_notice(text: str) -> bool:
    """Say whether a comment is a notice of ours that nobody has changed."""
    return text.startswith(NOTICE_PREFIX) and is_untampered(text)


def make_notice_orders(
    nodes: Mapping[str, SlurmNode], notices: Mapping[str, NodeNotice], field: NoticeField
) -> Iterator[str]:
    """Yield the orders for scontrol: a node out of service gets its notice, one in service loses it."""
    for name, notice in notices.items():
        present = _read_field(nodes[name], field) if name in nodes else None
        wanted = _format_notice(notice)
        if present is not None and present != wanted and (not present or is_our_notice(present)):
            yield f'update nodename={name} {field}="{wanted}"' if wanted else f"update nodename={name} {field}="


def find_missing_notices(
    nodes: Mapping[str, SlurmNode], notices: Mapping[str, NodeNotice], field: NoticeField
) -> dict[str, str]:
    """Return why a notice is not shown, by node. `nodes` are the nodes as they were just read."""
    lacks = {name: _find_lack(nodes.get(name), notice, field) for name, notice in notices.items()}
    return {name: lack for name, lack in lacks.items() if lack}


def make_rank_orders(nodes: Mapping[str, SlurmNode], is_last: Mapping[str, bool]) -> Iterator[str]:
    """Yield the orders for scontrol that add to the weights of nodes, or take it away: the least weight gets jobs."""
    for name in find_misranked(nodes, is_last).keys() & nodes.keys():
        yield f"update nodename={name} weight={nodes[name].weight + (LAST_WEIGHT if is_last[name] else -LAST_WEIGHT)}"


def find_misranked(nodes: Mapping[str, SlurmNode], is_last: Mapping[str, bool]) -> dict[str, str]:
    """Return which nodes have another weight than this asks for, and which."""
    weights = {name: nodes[name].weight if name in nodes else None for name in is_last}
    return {
        name: UNKNOWN_NODE if weight is None else f"its weight is {weight}"
        for name, weight in weights.items()
        if weight is None or (weight >= LAST_WEIGHT) != is_last[name]
    }


def _find_lack(node: SlurmNode | None, notice: NodeNotice, field: NoticeField) -> str:
    if node is None:
        return UNKNOWN_NODE
    present, wanted = _read_field(node, field), _format_notice(notice)
    if present == wanted or (not wanted and not is_our_notice(present)):
        return ""
    if is_our_notice(present):
        return f"the node's {field} still has an earlier notice"
    return f"the node's {field} is used by somebody else" if present else f"the node's {field} is empty"


def _format_notice(notice: NodeNotice) -> str:
    """Return the text on the node, "" for a node in service without planned work."""
    return tag_reason(f"{NOTICE_PREFIX}{notice.text}") if notice.is_worth_a_comment else ""


def _read_field(node: SlurmNode, field: NoticeField) -> str:
    return node.comment if field == "comment" else node.extra
