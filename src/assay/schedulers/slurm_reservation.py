"""Reservations for suspicious nodes: customers' jobs do not start there, our own checks can.

One reservation a node, `assay-suspicious-NODE`, for the user that assay runs as; jobs that run go on. Slurm 22.05 keeps
no comment of a reservation, so the reason stands, sealed, in the node's comment, as long as nobody else uses that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assay.model.slurm_reason import display_reason, is_untampered, tag_reason
from assay.schedulers.scheduler_adapter import prefix_reason
from assay.schedulers.slurm_client import SlurmClient
from assay.schedulers.slurm_json import SlurmNode
from assay.schedulers.slurm_node_status import read_user_name

RESERVATION_PREFIX = "assay-suspicious-"
RESERVATION_FLAGS = "maint,ignore_jobs"


def list_reserved_nodes(programs: SlurmClient) -> set[str]:
    """Return the nodes that a reservation of ours stands for, by its name."""
    firsts = (line.split()[0] for line in programs.read_lines("scontrol", "--oneliner", "show", "reservation") if line)
    names = (word.partition("=")[2] for word in firsts if word.startswith("ReservationName="))
    return {name.removeprefix(RESERVATION_PREFIX) for name in names if name.startswith(RESERVATION_PREFIX)}


def read_reservation_reason(node: SlurmNode) -> str:
    """Return the reason for which a node is reserved."""
    return display_reason(node.comment) if is_untampered(node.comment) else prefix_reason("suspicious")


def make_reservation_orders(reasons: Iterable[tuple[SlurmNode, str]]) -> Iterator[str]:
    """Yield the orders that reserve nodes."""
    for node, reason in reasons:
        if not node.comment or is_untampered(node.comment):
            yield f'update nodename={node.name} comment="{tag_reason(reason)}"'
        what = f"nodes={node.name} users={read_user_name()} starttime=now duration=infinite flags={RESERVATION_FLAGS}"
        yield f"create reservationname={RESERVATION_PREFIX}{node.name} {what}"


def make_release_orders(node: SlurmNode) -> Iterator[str]:
    """Yield the orders that give a node back."""
    yield f"delete reservation={RESERVATION_PREFIX}{node.name}"
    if is_untampered(node.comment):
        yield f"update nodename={node.name} comment="
