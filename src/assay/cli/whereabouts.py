"""`assay history --serial S`: every place where a part, or a node, was, and what happened there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from assay.controller.people.telling import Teller
from assay.lifecycle.when import moment
from assay.lifecycle.whereabouts import stays_of
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.cli.desk import Desk
    from assay.model.entry import Entry

OF_PARTS = ("fault", "fault.cleared", "part.returned")
OF_NODES = (*OF_PARTS, "transition", "part.replaced", "hold", "release", "certified", "move", "zap.asked")
SENT = "effect.intent"


def show_stays(desk: Desk, serial: str, form: str) -> None:
    """Show where a serial number was, oldest first. Raises Trouble for one that was never seen."""
    stays = stays_of(desk.ledger.entries(kinds=["parts.seen", "part.replaced"]), serial)
    if not stays:
        fix = "it is written as the part itself says it; `assay history NODE` names the parts of a node"
        raise Trouble(f"nothing with the serial number {serial} was ever seen", fix=fix)
    for stay in stays:
        stay["happened"] = _happened(desk, stay, serial)
    if form == "json":
        typer.echo(json.dumps({"serial": serial, "stays": stays}, indent=1, ensure_ascii=False))
        return
    for stay in stays:
        _tell(stay)


def _happened(desk: Desk, stay: dict[str, Any], serial: str) -> list[dict[str, Any]]:
    """Return what the ledger has of this place while the part was there; of a node, where it went as well."""
    kinds = OF_PARTS if stay["place"] else OF_NODES
    teller, found, ours = Teller(), [], set[str]()
    for entry in desk.ledger.entries(stay["node"]):
        text = teller.told(entry)
        if entry.kind == "fault" and entry.body["subject"].endswith(f"/{stay['place'] or stay['node']}"):
            ours.add(entry.body["fault"])
        inside = moment(stay["since"]) <= moment(entry.at) and (not stay["until"] or entry.at <= stay["until"])
        if inside and (_about(entry, kinds, ours, serial) or _sent(entry, serial)):
            told = "sent back, with a dossier" if entry.kind == SENT else text
            found.append({"at": entry.at, "kind": entry.kind, "text": told})
    return found


def _about(entry: Entry, kinds: tuple[str, ...], ours: set[str], serial: str) -> bool:
    if entry.kind not in kinds:
        return False
    if entry.kind in ("fault", "fault.cleared") and kinds == OF_PARTS:
        return entry.body["fault"] in ours
    return entry.kind != "part.returned" or bool(entry.body["serial"] == serial)


def _sent(entry: Entry, serial: str) -> bool:
    suspects = entry.body.get("before", {}).get("suspects", ()) if entry.kind == SENT else ()
    return any(one["serial"] == serial for one in suspects)


def _tell(stay: dict[str, Any]) -> None:
    until = f"until {stay['until'][:16].replace('T', ' ')}" if stay["until"] else "to this day"
    where = f"{stay['node']} {stay['place']}".strip()
    typer.echo(f"{stay['kind']} in {where}, seen since {stay['since'][:16].replace('T', ' ')}, {until}")
    for one in stay["happened"]:
        typer.echo(f"  {one['at'][:19].replace('T', ' ')}  {one['text']}")
