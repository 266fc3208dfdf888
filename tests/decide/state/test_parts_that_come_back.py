"""A part that was sent back to its vendor, and came back, is recognised."""

from __future__ import annotations

from datetime import UTC, datetime

from assay.decide.state.asset_history import describe_returned_part, find_returned_parts
from assay.model.ledger_entry import LedgerEntry

AT = datetime(2026, 11, 22, 9, tzinfo=UTC).isoformat()
PIECE = {"kind": "gpu", "serial": "1650923001"}
SENT = {"from": "n0003", "from_place": "gpu2", "sent_at": AT, "faults": ["gpu.xid.79"]}


def test_a_part_that_came_back_is_told_as_long_as_it_is_there():
    back = LedgerEntry("b", AT, "part.returned", "n0004", {**PIECE, "place": "gpu7", **SENT})
    seen = LedgerEntry("p", AT, "parts.seen", "n0004", {"parts": {"gpu7": PIECE}, "node": {}})
    (entry,) = find_returned_parts([seen, back])
    assert describe_returned_part(entry) == (
        "gpu7 (gpu 1650923001) was sent back from n0003 gpu2 on 2026-11-22 for gpu.xid.79"
    )
    other = LedgerEntry(
        "q", AT, "parts.seen", "n0004", {"parts": {"gpu7": {"kind": "gpu", "serial": "other"}}, "node": {}}
    )
    assert find_returned_parts([seen, back, other]) == []
