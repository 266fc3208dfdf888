"""Reservations for suspicious nodes: customers' jobs do not start there, our own checks can.

One reservation a node, `assay-suspicious-NODE`, for the user that assay runs as; jobs that run go on. Slurm 22.05 keeps
no comment of a reservation, so the reason stands, sealed, in the node's comment, as long as nobody else uses that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assay.actions.slurm.programs import Programs
from assay.actions.slurm.reading import SlurmNode
from assay.actions.slurm.standing import us
from assay.actions.workloads import our_reason
from assay.model.sealed import sealed, told, wholly_ours

NAME = "assay-suspicious-"
FLAGS = "maint,ignore_jobs"


def reserved(programs: Programs) -> set[str]:
    """Return the nodes that a reservation of ours stands for, by its name."""
    firsts = (line.split()[0] for line in programs.lines("scontrol", "--oneliner", "show", "reservation") if line)
    names = (word.partition("=")[2] for word in firsts if word.startswith("ReservationName="))
    return {name.removeprefix(NAME) for name in names if name.startswith(NAME)}


def reason_of(node: SlurmNode) -> str:
    """Return the reason for which a node is reserved."""
    return told(node.comment) if wholly_ours(node.comment) else our_reason("suspicious")


def made(reasons: Iterable[tuple[SlurmNode, str]]) -> Iterator[str]:
    """Yield the orders that reserve nodes."""
    for node, reason in reasons:
        if not node.comment or wholly_ours(node.comment):
            yield f'update nodename={node.name} comment="{sealed(reason)}"'
        what = f"nodes={node.name} users={us()} starttime=now duration=infinite flags={FLAGS}"
        yield f"create reservationname={NAME}{node.name} {what}"


def undone(node: SlurmNode) -> Iterator[str]:
    """Yield the orders that give a node back."""
    yield f"delete reservation={NAME}{node.name}"
    if wholly_ours(node.comment):
        yield f"update nodename={node.name} comment="
