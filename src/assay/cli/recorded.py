"""Evidence of a node from files that other tools wrote: `assay observe --from FILE… --node NODE`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.cli.desk import Desk
    from assay.model.evidence import Evidence


def recorded(desk: Desk, files: list[Path], node: str, at: str) -> Evidence:
    """Return what the files say of a node, at that time or when they were written. Raises Trouble."""
    from assay.observe.recorded.read_in import read_in

    if not node:
        raise Trouble("a recording does not say whose it is", fix="name the node: --node NAME")
    if node not in desk.fleet.nodes:
        raise Trouble(f"the inventory has no node {node}", where=str(desk.fleet.root / "inventory"))
    return read_in(files, node, _moment(at))


def keep_recorded(desk: Desk, evidence: Evidence) -> str:
    """Store a recording and return its digest; it is the node's newest evidence only where it is the newest.

    Where it is not, stderr says so: what is judged then is not what was just read.
    """
    from assay.observe.store import EvidenceStore

    store = EvidenceStore(desk.evidence)
    last = store.latest(evidence.node)
    if last is None or last.at <= evidence.at:
        return store.put(evidence)
    said = f"kept as history: evidence of {evidence.node} of {last.at:%Y-%m-%d %H:%M:%S} UTC is newer"
    print(f"{said}; --at says when it was", file=sys.stderr)  # noqa: T201
    return store.keep(evidence)


def _moment(at: str) -> datetime | None:
    if not at:
        return None
    try:
        read = datetime.fromisoformat(at)
    except ValueError:
        raise Trouble(f"{at!r} is no time", fix="write it as 2026-11-21T08:00:00Z") from None
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
