"""Reservations that close a suspicious node: customers' jobs do not start there, our own checks can.

Each node has its own reservation, `assay-suspicious-NODE`, for the user that runs assay. Running jobs go on. Slurm
22.05 keeps no comment of a reservation. So the reason is in the node's comment, unless somebody else uses that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assay.model.cordon_reason_checksum import display_reason, is_untampered, prefix_reason, tag_reason
from assay.schedulers.slurm_client import SlurmClient, read_user_name
from assay.schedulers.slurm_json import SlurmNode

RESERVATION_PREFIX = "assay-suspicious-"
RESERVATION_FLAGS = "maint,ignore_jobs"


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
