"""RMA: the ticket names dossier and folder, photos are added, and a part that comes back is recognised."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

import pytest

from assay.act.actions import dossier
from assay.act.actions.action import EffectIntent
from assay.act.effects.effect_journal import derive_effect_id, make_intent_entry
from assay.act.loop.context import ControllerContext
from assay.act.remedies.dossier_build import read_zip
from assay.decide.state.asset_history import describe_returned_part, find_returned_parts
from assay.declare.loader import load_fleet
from assay.model.clock import SystemClock
from assay.model.ledger_entry import LedgerEntry
from assay.observe.evidence_store import EvidenceStore

AT = datetime(2026, 11, 22, 9, tzinfo=UTC).isoformat()
JPEG = b"\xff\xd8\xff\xe0 a photo"
PIECE = {"kind": "gpu", "serial": "1650923001"}
SENT = {"from": "n0003", "from_place": "gpu2", "sent_at": AT, "faults": ["gpu.xid.79"]}


@pytest.fixture
def asked(ann):
    """The intent of a dossier about n0003, as the controller writes it, and its archive."""
    home = ann.root / ".assay"
    desk = ControllerContext(
        load_fleet(ann.root), ann.ledger(), EvidenceStore(home / "evidence"), SystemClock(), home, ann.root / "reports"
    )
    ctx = desk
    intent = EffectIntent(derive_effect_id("d1", "dossier"), "dossier", "n0003", "d1", "hardware that failed again")
    before = dossier.before(ctx, intent)
    desk.ledger.append(make_intent_entry(intent, AT, before, {}))
    dossier.run(ctx, replace(intent, before=before))
    return ann.root / "reports" / "rma" / f"n0003-{intent.effect}.zip"


def test_a_technician_puts_photos_in_the_folder_and_is_told_which_are_missing(ann, asked):
    first = asked.read_bytes()
    told = ann.reads("rma", "n0003")
    assert asked.read_bytes() == first, "another process makes the same bytes"
    assert {one["name"] for one in told["photos"] if not one["files"]} == {one["name"] for one in told["photos"]}
    (ann.root / told["folder"] / "label.jpg").write_bytes(JPEG)
    (ann.root / told["folder"] / "notes.txt").write_text("x")
    told = ann.reads("rma", "n0003")
    assert next(one["files"] for one in told["photos"] if one["name"] == "label") == ["label.jpg"]
    assert list(told["refused"]) == ["notes.txt"]
    assert read_zip(asked.read_bytes())["photos/label.jpg"] == JPEG
    text = ann.types("rma", "n0003")
    assert "photo label     label.jpg, ann 20" in text
    assert "photo fault     missing: The part that fails" in text


def test_each_photo_is_listed_with_who_added_it_when_and_its_sha256(ann, asked):
    folder = ann.root / ann.reads("rma", "n0003")["folder"]
    (folder / "label.jpg").write_bytes(JPEG)
    [told] = ann.reads("rma", "n0003")["taken"]
    assert told == {**told, "file": "label.jpg", "who": "ann", "sha256": sha256(JPEG).hexdigest(), "bytes": len(JPEG)}
    (folder / "label.jpg").write_bytes(JPEG + b" anew")
    (folder / "rack.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    taken = ann.reads("rma", "n0003", "--who", "bob")["taken"]
    assert [(one["file"], one["who"]) for one in taken] == [("label.jpg", "bob"), ("rack.png", "bob")]
    whole = asked.read_bytes()
    assert json.loads(read_zip(whole)["photos.json"]) == taken
    assert f"bob, {taken[0]['at'][:10]} {taken[0]['at'][11:16]} UTC" in read_zip(whole)["index.html"].decode()
    assert "rack.png, bob" in ann.types("rma", "n0003"), "what nobody asked for is listed too"
    assert asked.read_bytes() == whole, "nobody has to say twice what is theirs"
    assert ann.kinds("n0003").count("photos.taken") == 2
    assert "2 photos for the dossier, added by bob: label.jpg, rack.png" in ann.types("history", "n0003")


def test_a_node_that_was_never_to_go_back_has_no_dossier(ann):
    assert "no dossier was requested for n0004" in ann.is_refused("rma", "n0004")


def test_a_part_that_came_back_is_told_as_long_as_it_is_there(ann):
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
