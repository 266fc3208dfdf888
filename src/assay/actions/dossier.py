"""dossier: everything that a vendor asks about a returned node, in one file. Proved by reading it back.

`reports/rma/<node>-<effect>.json`: who it is (serials of every part), its firmware, its faults, the failing outcomes,
and the evidence that they were judged on, whole.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from assay.actions.action import Context, Facts, Intent, Verification
from assay.model.errors import Trouble
from assay.model.evidence import Evidence, read
from assay.observe.store import write_whole

SCHEMA = "assay.dossier/1"
patience_s = 0.0


def before(ctx: Context, intent: Intent) -> Facts:  # noqa: ARG001 — the signature is Action's
    """Nothing is compared: the file is either there and whole, or not."""
    return {}


def run(ctx: Context, intent: Intent) -> None:
    """Write the dossier."""
    content = json.dumps(dossier(ctx, intent), indent=1, sort_keys=True)
    write_whole(path(ctx, intent), content.encode())


def verify(ctx: Context, intent: Intent) -> Verification:
    """Done when the file can be read and is this effect's."""
    place = path(ctx, intent)
    try:
        plain = json.loads(place.read_bytes())
    except (OSError, ValueError) as error:
        return Verification(False, f"no dossier: {error}")
    mine = plain.get("schema") == SCHEMA and plain.get("effect") == intent.effect
    shown = str(place.relative_to(ctx.reports.parent))
    return Verification(mine, f"{shown} is written" if mine else f"{shown} is something else", {"path": shown})


def path(ctx: Context, intent: Intent) -> Path:
    """Return where an effect's dossier lies."""
    return ctx.reports / "rma" / f"{intent.node}-{intent.effect}.json"


def dossier(ctx: Context, intent: Intent) -> dict[str, Any]:
    """Return the dossier as plain JSON data. Parts whose serial was never read are left out."""
    node = ctx.fleet.nodes[intent.node]
    failing = [one for one in ctx.ledger.latest(node.name) if one.outcome.verdict == "fail"]
    latest = ctx.evidence.latest(node.name)
    judged = dict.fromkeys(one.outcome.evidence for one in failing if one.outcome.evidence)
    return {
        "schema": SCHEMA,
        "effect": intent.effect,
        "at": ctx.clock.now().isoformat(),
        "reason": intent.reason,
        "node": {"name": node.name, "serial": node.serial, "site": node.site, "rack": node.rack, "u": node.u},
        "parts": serials(latest) if latest else {},
        "firmware": _firmware(latest) if latest else {},
        "faults": [entry.body for entry in ctx.ledger.entries(node.name, ["fault"])],
        "failing": [{"run": one.run, **one.outcome.as_json()} for one in failing],
        "evidence": {digest: _document(ctx, digest) for digest in judged},
    }


def serials(evidence: Evidence) -> dict[str, str]:
    """Return the serial number of every part that the evidence names, by where the part is."""
    found: dict[str, str] = {}
    for branch, listed in (("gpu", ("gpu", "devices")), ("nvme", ("nvme",))):
        parts = evidence.read("probe", *listed)
        names = parts.value if parts.kind == "value" and isinstance(parts.value, dict) else {}
        for name in names:
            serial = read(names, (name, "serial"))
            if serial.kind == "value":
                found[f"{branch} {name}"] = str(serial.value)
    return found


def _firmware(evidence: Evidence) -> dict[str, str]:
    tree = evidence.read("bmc", "firmware")
    names = tree.value if tree.kind == "value" and isinstance(tree.value, dict) else {}
    versions = {name: read(names, (name,)) for name in names}
    return {name: str(version.value) for name, version in versions.items() if version.kind == "value"}


def _document(ctx: Context, digest: str) -> dict[str, Any]:
    try:
        return ctx.evidence.get(digest).as_json()
    except Trouble as trouble:
        return {"missing": str(trouble)}
