"""The dossier of a returned node: who it is, what failed, what was tried, and the evidence, in one whole archive."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.act.actions import dossier
from assay.act.remedies.dossier_build import (
    MANIFEST_NAME,
    build_zip,
    locate_dossier,
    read_dossier,
    read_zip,
)
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.faults.sightings import map_parts_by_pci
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Outcome, SuiteRun
from assay.model.text.safe_text import register_secret
from assay.observe.evidence_collector import collect_evidence
from assay.observe.evidence_contents import find_node_serials, find_part_serials
from tests.support.lab_room import Room, wish

NODE, AT = "n0012", datetime(2026, 10, 1, 9, tzinfo=UTC)
CHECK, GPU = "suites/x.py::test_y", f"h100-a/{NODE}/gpu0"
FAULT = {"fault": "f1", "class": "gpu.xid.79", "subject": GPU, "severity": "catastrophic", "blame": "hardware"}
SEEN = {"count": 3, "first_seen": AT.isoformat(), "last_seen": AT.isoformat(), "detail": "<b>fell off</b>"}


def at(hours: int) -> str:
    return (AT + timedelta(hours=hours)).isoformat()


def judged(verdict: str, digest: str, hours: int) -> Outcome:
    return Outcome(
        CHECK, GPU, NODE, verdict, "7 of 8" if verdict == "fail" else "", evidence=digest, evidence_at=at(hours)
    )


@pytest.fixture
def asked(room: Room):
    """A node with a history: passed, fell ill, was rebooted, failed again; and the intent of its dossier."""
    context = room.context()
    ledger = context.ledger
    context = replace(context, ledger=type(ledger).open(f"sqlite:///{room.root}/dossier-{time.monotonic_ns()}.sqlite"))
    devices = {"0000:1b:00.0": {"serial": {"value": "1650923001"}}, "0000:43:00.0": {"failed": "GPU is lost"}}
    bmc = {"firmware": {"BMC": {"value": "1.2"}, "BIOS": {"failed": "x"}}, "system": {"serial": {"value": "C0001"}}}
    channels = {"probe": {"gpu": {"devices": devices}}, "bmc": bmc}
    digest = context.evidence.store_latest(EvidenceDocument(NODE, AT, channels))
    context.ledger.append(
        LedgerEntry("e", at(0), "node.enrolled", NODE, {"pool": "h100-a", "state": "production"}),
        LedgerEntry(
            "p", at(0), "parts.seen", NODE, {"parts": {"gpu1": {"kind": "gpu", "serial": "LOST1"}}, "node": {}}
        ),
        LedgerEntry("f1", at(1), "fault", NODE, {**FAULT, **SEEN}),
        LedgerEntry("x1", at(2), "effect.intent", NODE, {"effect": "x1", "action": "reboot", "decision": "d"}),
        LedgerEntry("x1v", at(3), "effect.verified", NODE, {"effect": "x1", "action": "reboot", "reason": "booted"}),
        LedgerEntry("w1", at(4), "effect.intent", NODE, {"effect": "w1", "action": "wipe", "decision": "d"}),
        LedgerEntry("w1f", at(5), "effect.failed", NODE, {"effect": "w1", "action": "wipe", "reason": "nvme3 lies"}),
    )
    for hours, verdict in ((0, "pass"), (2, "fail"), (4, "fail")):
        context.ledger.record(SuiteRun(f"r{hours}", at(hours)), [judged(verdict, digest, hours)])
    intent = wish("dossier", NODE)
    return context, replace(intent, before=dossier.before(context, intent)), digest, channels


def members(context, intent) -> dict[str, bytes]:
    return read_zip(locate_dossier(context.reports, intent.node, intent.effect).read_bytes())


def test_it_says_who_the_node_is_what_fails_and_what_was_tried(asked, room):
    context, intent, digest, channels = asked
    dossier.run(context, intent)
    assert dossier.verify(context, intent).done
    told = read_dossier(context.reports, NODE, intent.effect)
    assert told["node"]["serial"] == room.fleet.nodes[NODE].serial
    assert told["node"]["read"] == {"bmc": "C0001"}
    assert {(part["place"], part["serial"]) for part in told["parts"]} == {("gpu0", "1650923001"), ("gpu1", "LOST1")}
    assert told["suspects"] == [{"kind": "gpu", "place": "gpu0", "serial": "1650923001", "faults": ["gpu.xid.79"]}]
    assert told["firmware"] == {"BMC": "1.2"}
    assert (told["lemon"]["points"], told["lemon"]["threshold"]) == (0, room.fleet.policy.lemon.threshold)
    assert b"What the node has cost in its life" in members(context, intent)["index.html"]
    assert [(one["class"], one["count"]) for one in told["faults"]] == [("gpu.xid.79", 3)]
    assert [(one["what"], one["end"]) for one in told["repairs"]] == [("reboot", "verified"), ("wipe", "failed")]
    assert b"nvme3 lies" in members(context, intent)["index.html"]
    (test,) = told["tests"]
    assert (test["last_pass"]["run"], test["first_fail"]["run"], test["fails"]) == ("r0", "r2", 2)
    assert [(after["repair"], after["said"]["run"]) for after in test["after"]] == [("reboot", "r4")]
    assert json.loads(members(context, intent)[f"evidence/{digest}.json"])["channels"] == channels
    assert hashlib.sha256(members(context, intent)[f"evidence/{digest}.json"]).hexdigest() == digest


def test_the_page_comes_first_and_takes_nothing_that_it_shows_for_its_own(asked):
    context, intent, _, _ = asked
    dossier.run(context, intent)
    name, page = next(iter(members(context, intent).items()))
    assert name == "index.html"
    assert b"&lt;b&gt;fell off&lt;/b&gt;" in page
    assert b"<b>fell off" not in page


def test_made_again_after_more_has_happened_it_is_the_same_to_the_byte(asked):
    context, intent, _, _ = asked
    dossier.run(context, intent)
    first = locate_dossier(context.reports, NODE, intent.effect).read_bytes()
    context.evidence.store_latest(EvidenceDocument(NODE, AT + timedelta(days=1), {"probe": {"failed": "gone"}}))
    context.ledger.append(LedgerEntry("f1b", at(30), "fault", NODE, {**FAULT, **SEEN, "count": 9}))
    context.ledger.record(SuiteRun("r9", at(9)), [judged("pass", "", 9)])
    locate_dossier(context.reports, NODE, intent.effect).unlink()
    dossier.run(context, intent)
    assert locate_dossier(context.reports, NODE, intent.effect).read_bytes() == first


def test_no_secret_that_came_to_be_known_is_in_it(asked):
    context, intent, _, _ = asked
    register_secret("root:hunter2-of-the-dossier")
    body = {**FAULT, **SEEN, "fault": "f2", "detail": "login root:hunter2-of-the-dossier failed"}
    context.ledger.append(LedgerEntry("f2", at(5), "fault", NODE, body))
    intent = replace(intent, effect="x-secret", before=dossier.before(context, intent))
    dossier.run(context, intent)
    assert not any(b"hunter2-of-the-dossier" in content for content in members(context, intent).values())


@pytest.mark.parametrize(("stored", "is_held"), [(b"PK as collected", True), (b"PK changed", False), (b"", False)])
def test_what_was_collected_before_restarts_is_in_the_dossier_as_the_ledger_has_it(asked, stored: bytes, is_held: bool):
    context, intent, *_ = asked
    digest = hashlib.sha256(b"PK as collected").hexdigest()
    name = f"{NODE}-c-{is_held}-{len(stored)}.zip"
    facts = {"path": f"reports/diagnostics/{name}", "sha256": digest, "bytes": 15, "lacking": [], "at": at(2)}
    body = {"effect": "c1", "action": "collect", "reason": "written", "facts": facts}
    context.ledger.append(LedgerEntry("c1v", at(3), "effect.verified", NODE, body))
    if stored:
        (context.reports / "diagnostics").mkdir(parents=True, exist_ok=True)
        (context.reports / "diagnostics" / name).write_bytes(stored)
    intent = replace(intent, effect=f"x-{name}", before=dossier.before(context, intent))
    dossier.run(context, intent)
    held = members(context, intent)
    assert read_dossier(context.reports, NODE, intent.effect)["diagnostics"] == [facts]
    assert digest in held["index.html"].decode()
    assert (f"diagnostics/{name}" in held) == is_held


def test_what_was_changed_cut_short_or_is_another_effects_is_no_dossier(asked):
    context, intent, _, _ = asked
    dossier.run(context, intent)
    place = locate_dossier(context.reports, NODE, intent.effect)
    whole = place.read_bytes()
    for broken in (whole[:-20], b"", b"{}", build_zip({"dossier.json": b'{"effect": "another"}'})):
        place.write_bytes(broken)
        assert dossier.verify(context, intent).done is False
    with pytest.raises(AssayError):
        read_dossier(context.reports, NODE, "never")


def test_every_kind_of_part_is_read_with_its_serial_number_and_where_faults_place_it(room):
    context = room.context()
    evidence = collect_evidence(room.fleet, [NODE], clock=context.clock, store=context.evidence)[NODE]
    spec = room.fleet.spec_of(NODE)
    parts = find_part_serials(evidence, map_parts_by_pci(spec))
    places = {
        kind: [part.place for part in parts if part.kind == kind] for kind in ("gpu", "hca", "nvme", "psu", "dimm")
    }
    assert places["gpu"] == [f"gpu{slot}" for slot in range(len(spec.gpus.pci))]
    assert places["hca"] == [hca.name for hca in spec.hcas]
    assert places["psu"] == [f"psu{bay}" for bay in range(spec.psus.count)]
    assert len(places["nvme"]) == spec.nvme.count
    assert places["dimm"]
    assert len({part.serial for part in parts}) == len(parts)
    serial = room.fleet.nodes[NODE].serial
    assert find_node_serials(evidence) == {"bmc": serial, "dmi": serial}


CHILD = """
import pickle, sys
from pathlib import Path
from assay.act.remedies.dossier_build import build_zip
from assay.observe.evidence_store import write_atomically
place, number = Path(sys.argv[1]), 0
while True:
    number += 1
    write_atomically(place, build_zip({{"dossier.json": b'{{"effect": "x"}}', "big": bytes([number % 256]) * 400_000}}))
    print("made", flush=True)
"""


def test_killed_at_any_moment_there_is_a_whole_archive_or_none(tmp_path):
    place = tmp_path / f"{NODE}-x.zip"
    for number in range(6):
        child = subprocess.Popen([sys.executable, "-c", CHILD.format(), str(place)], stdout=subprocess.PIPE, text=True)
        if number:
            child.stdout.readline()
        time.sleep(0.003 * number)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        if place.exists():
            assert set(read_zip(place.read_bytes())) == {"dossier.json", "big"}
    assert place.exists()


NAMES = st.text("abcdefgh/._-", min_size=1, max_size=12).filter(lambda name: name != MANIFEST_NAME)


@given(st.dictionaries(NAMES, st.binary(max_size=300), max_size=6))
def test_an_archive_of_the_same_things_is_the_same_and_gives_them_back(things):
    packed = build_zip(things)
    assert packed == build_zip(dict(things))
    assert read_zip(packed) == things


@given(st.dictionaries(NAMES, st.binary(min_size=1, max_size=60), min_size=1, max_size=4), st.data())
def test_an_archive_with_a_changed_byte_is_refused_or_says_the_same(things, data):
    packed = bytearray(build_zip(things))
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        found = read_zip(bytes(packed))
    except ValueError:
        return
    assert found == things
