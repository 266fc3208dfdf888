"""`assay history`: the transitions of a node, and the places of a part."""

from __future__ import annotations

import json

from assay.model.errors import AssayError, describe_error
from assay.model.ledger_entry import LedgerEntry

AT = "2026-11-22T09:00:00+00:00"
FAULT = {"fault": "f", "class": "gpu.xid.79", "subject": "h100-a/n0003/gpu2", "severity": "catastrophic", "count": 2}
SENT = {"from": "n0001", "from_place": "gpu0", "sent_at": AT, "faults": ["gpu.xid.79"]}


def test_history_shows_moves_alone_to_whoever_asks_for_those(ann):
    ann.types("move", "n0002", "debug", "--reason", "on the bench")
    ann.types("hold", "n0002", "--reason", "bob is at it", "--for", "2d")
    assert [one["kind"] for one in ann.reads("history", "n0002", "--moves")["entries"]] == [
        "node.enrolled",
        "move",
        "hold",
    ]
    text = ann.types("history", "n0002", "--moves")
    assert "asked by ann to go to debug: on the bench" in text
    assert "held by ann until " in text


def test_history_is_in_the_order_of_time_and_each_entry_is_one_line(ann):
    reason = describe_error(AssayError("no way", where="specs/a.yaml:3", fix="open one"))
    late, early = "2026-11-23T12:00:00+00:00", "2026-11-23T11:00:00+00:00"
    tried = {"effect": "x", "action": "wipe", "attempt": 1, "reason": reason, "again_at": late}
    ann.ledger().append(
        LedgerEntry("t1", late, "effect.tried", "n0003", tried),
        LedgerEntry("h1", early, "hold", "n0003", {"who": "bob", "reason": "a look", "until": ""}),
    )
    assert [one["at"] for one in ann.reads("history", "n0003")["entries"]][1:] == [early, late]
    text = ann.types("history", "n0003")
    assert "specs/a.yaml:3: no way → open one" in text
    assert "\\n" not in text


def test_history_of_a_serial_number_shows_every_place_and_what_happened_there(ann):
    gpu, at = {"kind": "gpu", "serial": "1650923001"}, "2026-11-21T1{}:00:00+00:00".format
    suspect = {"kind": "gpu", "place": "gpu2", "serial": "1650923001", "faults": ["gpu.xid.79"]}
    seen = {"severity": "catastrophic", "blame": "hardware", "first_seen": AT, "last_seen": AT, "detail": "fell off"}
    asked = {"effect": "x", "action": "dossier", "decision": "d", "before": {"suspects": [suspect]}}
    ann.ledger().append(
        LedgerEntry("p1", at(3), "parts.seen", "n0003", {"parts": {"gpu2": gpu}, "node": {}}),
        LedgerEntry("f1", at(4), "fault", "n0003", {**FAULT, **seen}),
        LedgerEntry("x1", at(5), "effect.intent", "n0003", asked),
        LedgerEntry("p2", at(6), "parts.seen", "n0004", {"parts": {"gpu7": gpu}, "node": {}}),
        LedgerEntry("p3", at(6), "part.returned", "n0004", {**gpu, "place": "gpu7", **SENT}),
    )
    told = ann.reads("history", "--serial", "1650923001")["stays"]
    assert [(stay["node"], stay["place"], bool(stay["until"])) for stay in told] == [
        ("n0003", "gpu2", True),
        ("n0004", "gpu7", False),
    ]
    assert [one["kind"] for one in told[0]["happened"]] == ["fault", "effect.intent"]
    assert [one["kind"] for one in told[1]["happened"]] == ["part.returned"]
    assert "sent back, with a dossier" in ann.types("history", "--serial", "1650923001")
    assert "was ever seen" in ann.is_refused("history", "--serial", "165")
    assert json.dumps(told)
