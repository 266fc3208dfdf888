"""Groups the discrepancies of boxes with several chips: directors, switches with several ASICs or with planes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.fabric.compare.discrepancy import CablingDiscrepancy
from assay.fabric.compare.repair import CablingRepair, group_by_key


def merge_lost_boxes(found: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several chips of one box missing: the card or plane that they are on, or the whole box."""
    for where, names, members in _group_chips(found, "device-missing"):
        yield CablingRepair(
            members, f"box/{where}", f"{where}: {len(members)} chips not in the fabric",
            f"{names} are chips of {where}: its power, or the card itself",
        )  # fmt: skip


def merge_renewed_boxes(found: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several chips of one box have new GUIDs: somebody replaced the card that they are on, or the whole box."""
    for where, names, members in _group_chips(found, "device-replaced"):
        yield CablingRepair(
            members, f"renewed/{where}", f"{where}: {len(members)} chips with new GUIDs",
            f"{names} are chips of {where}, which was replaced",
        )  # fmt: skip


def merge_links_in_boxes(found: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several links inside one box are down: one card of it."""
    for box, members in _group_by_box(found, "missing"):
        if len(members) > 1:
            yield CablingRepair(
                members, f"inside/{box}", f"{box}: {len(members)} links inside it are down",
                f"the links run inside {box}: one of its cards is not seated, or broken",
            )  # fmt: skip


def merge_planes(found: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """The chips of one plane missing in several boxes: what the plane has in common, such as its subnet manager."""
    for (plane,), members in group_by_key(
        found, "device-missing", lambda each: [(str(each.plane),)] if each.plane else []
    ):
        if len(members) > 1:
            yield CablingRepair(
                members, f"plane/{plane}", f"Plane {plane}: {len(members)} chips not in the fabric",
                f"these chips carry plane {plane} of their boxes, whose other planes work: its subnet manager first",
            )  # fmt: skip


def _group_chips(
    found: Sequence[CablingDiscrepancy], kind: str
) -> Iterator[tuple[str, str, tuple[CablingDiscrepancy, ...]]]:
    """Yield the card or box of several chips, their names, and the chips."""
    for box, members in _group_by_box(found, kind):
        if len(members) > 1:
            yield _find_part(box, members), ", ".join(member.device for member in members), members


def _group_by_box(
    found: Sequence[CablingDiscrepancy], kind: str
) -> Iterator[tuple[str, tuple[CablingDiscrepancy, ...]]]:
    for (box,), members in group_by_key(found, kind, lambda each: [(each.box,)] if each.box else []):
        yield box, members


def _find_part(box: str, members: Sequence[CablingDiscrepancy]) -> str:
    """Return the name of the card that all of these chips are on, else of the box."""
    modules = {member.module for member in members}
    return f"{box} {modules.pop()}" if len(modules) == 1 and members[0].module else box
