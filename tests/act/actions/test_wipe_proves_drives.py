"""Drives of virtual nodes are wiped by a real playbook, and proven wiped by what a real probe reads of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from assay.act.actions import wipe
from assay.act.actions.action import EffectIntent, EffectVerification
from assay.act.remedies.node_wipe import make_wipe_entry
from assay.lab.faults.injection import inject_fault
from assay.model.entries.effects import WipeMissedEntry, WipeOrderedEntry, WipeProvedEntry
from assay.model.errors import AssayError
from tests.support.lab_room import Room, wish

DRIVES = 8


def begin(room: Room, node: str) -> EffectIntent:
    """Make a node new and closed, with something of a customer's on each drive; return the intent of its wipe."""
    room.fresh(node)
    room.scheduler(node).cordon(node, "assay: a test")
    for slot in range(DRIVES):
        with device(room, node, slot).open("r+b") as file:
            file.write(b"a customer's data")
    intent = wish("wipe", node)
    return EffectIntent(
        intent.effect, "wipe", node, "d1", "a test wants it", before=wipe.before(room.context(), intent)
    )


def device(room: Room, node: str, slot: int):
    return room.world.folder(node) / f"root/dev/nvme{slot}n1"


def run(room: Room, node: str) -> EffectVerification:
    intent = begin(room, node)
    wipe.run(room.context(), intent)
    return wipe.verify(room.context(), intent)


def sanitizes(room: Room, node: str, slot: int) -> list[str]:
    return [one["method"] for one in room.state(node)["nvme"][slot].get("sanitizes", [])]


def told(room: Room, node: str, content: type[Any]) -> list[Any]:
    return [content.read(one) for one in room.context().ledger.entries(node, [content.kind])]


@pytest.mark.slow
def test_every_drive_is_wiped_once_and_the_ledger_has_the_proof(room: Room) -> None:
    verdict = run(room, "n0001")
    assert verdict.done, verdict.reason
    serials = {drive["serial"] for drive in room.state("n0001")["nvme"]}
    proofs = told(room, "n0001", WipeProvedEntry)
    assert {one.serial for one in proofs} == serials
    assert {one.method for one in proofs} == {"sanitize-crypto"}
    assert proofs[0].proof == "none of 16 marked blocks can be read any more; its sanitize log says: completed"
    assert {one["serial"] for one in verdict.facts["drives"] if one["standing"] == "wiped"} == serials
    assert all(b"customer" not in device(room, "n0001", slot).read_bytes() for slot in range(DRIVES))
    wipe.run(room.context(), wish("wipe", "n0001"))
    assert [sanitizes(room, "n0001", slot) for slot in range(DRIVES)] == [["sanitize-crypto"]] * DRIVES


@pytest.mark.slow(minutes=1)
def test_a_drive_that_lies_and_one_that_fails_and_one_that_knows_little(room: Room) -> None:
    begin(room, "n0002")
    for drive in (1, 2):
        inject_fault(
            room.world, "nvme.wipe-unknown", "n0002", {"drive": drive, "knows": "sanitize-crypto,format-erase"}
        )
    inject_fault(room.world, "nvme.sanitize-lies", "n0002", {"drive": 1})
    inject_fault(room.world, "nvme.sanitize-fails", "n0002", {"drive": 2})
    inject_fault(room.world, "nvme.wipe-unknown", "n0002", {"drive": 3})
    inject_fault(room.world, "nvme.wipe-unknown", "n0002", {"drive": 4, "knows": ""})
    intent = wish("wipe", "n0002")
    wipe.run(room.context(), intent)
    verdict = wipe.verify(room.context(), intent)
    assert verdict.done is False
    standing = {one["drive"]: one["standing"] for one in verdict.facts["drives"]}
    assert [name for name, word in standing.items() if word != "wiped"] == ["nvme1", "nvme2", "nvme4"]
    assert "16 of 16 marked blocks can still be read; its sanitize log says: completed" in verdict.reason
    assert "its sanitize log says that the sanitize failed" in verdict.reason
    assert "it knows none of the methods of its spec" in verdict.reason
    assert "remove these drives and shred them" in verdict.reason
    tried = {one.method for one in told(room, "n0002", WipeMissedEntry) if one.drive == "nvme1"}
    assert len(tried) == 2, "a drive that lies gets every method that it knows"
    assert {one.method for one in told(room, "n0002", WipeProvedEntry) if one.drive == "nvme3"} == {"format-erase"}


@pytest.mark.slow(minutes=1)
def test_a_drive_that_holds_the_system_is_told_and_left_alone(room: Room) -> None:
    begin(room, "n0003")
    mounted = {"source": "/dev/nvme5n1", "point": "/", "type": "ext4", "options": "rw"}
    data = {"source": "/dev/nvme6n1", "point": "/data", "type": "ext4", "options": "rw"}
    room.change("n0003", lambda state: state["host"]["mounts"].extend([mounted, data]))
    intent = wish("wipe", "n0003")
    wipe.run(room.context(), intent)
    verdict = wipe.verify(room.context(), intent)
    assert verdict.done is False
    assert "it is in use: mounted at /; remove these drives" in verdict.reason
    assert sanitizes(room, "n0003", 5) == []
    assert device(room, "n0003", 5).read_bytes().startswith(b"a customer's data")
    assert sanitizes(room, "n0003", 6) == ["sanitize-crypto"], "the spec lets the wipe unmount /data"


@pytest.mark.slow(minutes=1)
def test_a_drive_that_does_not_answer_is_not_wiped(room: Room) -> None:
    begin(room, "n0004")
    room.change("n0004", lambda state: state["nvme"][7].update(present=False))
    intent = wish("wipe", "n0004")
    wipe.run(room.context(), intent)
    verdict = wipe.verify(room.context(), intent)
    assert verdict.done is False
    assert "1 of 8 drives do not answer" in verdict.reason


def test_a_node_that_cannot_be_reached_is_not_wiped_and_says_so(room: Room) -> None:
    begin(room, "n0005")
    room.change("n0005", lambda state: state["power"].update(state="Off"))
    intent = wish("wipe", "n0005")
    with pytest.raises(AssayError, match="its drives cannot be read"):
        wipe.run(room.context(), intent)
    verdict = wipe.verify(room.context(), intent)
    assert verdict.done is False
    assert "its drives are not proven wiped" in verdict.reason
    assert "remove these drives and shred them" in verdict.reason


def test_a_spec_that_leaves_out_every_drive_proves_nothing(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(room, "n0008")
    spec = room.fleet.spec_of("n0008")
    changed = spec.model_copy(update={"wipe": spec.wipe.model_copy(update={"models": ["KIOXIA*"]})})
    monkeypatch.setitem(room.fleet.node_specs, spec.name, changed)
    intent = wish("wipe", "n0008")
    wipe.run(room.context(), intent)
    verdict = wipe.verify(room.context(), intent)
    assert verdict.done is False
    assert "leaves out every drive" in verdict.reason
    assert sanitizes(room, "n0008", 0) == []


@pytest.mark.slow
def test_a_sanitize_without_end_is_no_proof_and_ends_the_wait(room: Room) -> None:
    intent = begin(room, "n0009")
    serial = room.state("n0009")["nvme"][0]["serial"]
    order = WipeOrderedEntry(intent.effect, serial, "M", "nvme0", "sanitize-crypto", "ab" * 32, 16)
    now = room.world.clock().now()
    endless = {
        "method": "sanitize-crypto",
        "at": now.isoformat(),
        "ends_at": "2036-01-01T00:00:00+00:00",
        "fails": False,
    }
    room.change("n0009", lambda state: state["nvme"][0].update(sanitizes=[endless]))
    for days, done in ((0, None), (2, False)):
        at = (now - timedelta(days=days)).isoformat()
        room.context().ledger.append(make_wipe_entry(order, at, "n0009"))
        verdict = wipe.verify(room.context(), intent)
        assert verdict.done is done, verdict.reason
        assert "its sanitize is in progress" in verdict.reason
        order = replace(order, method="sanitize-block")


def test_nothing_is_erased_while_a_job_may_start(room: Room) -> None:
    begin(room, "n0006")
    room.scheduler("n0006").uncordon("n0006")
    with pytest.raises(AssayError, match="nothing is erased while a job may start"):
        wipe.run(room.context(), wish("wipe", "n0006"))
    assert told(room, "n0006", WipeOrderedEntry) == []


def test_a_node_whose_spec_declares_no_wipe_is_left_alone(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = room.fleet.spec_of("n0007")
    monkeypatch.setitem(room.fleet.node_specs, spec.name, spec.model_copy(update={"wipe": None}))
    intent = wish("wipe", "n0007")
    wipe.run(room.context(), intent)
    verdict = wipe.verify(room.context(), intent)
    assert verdict.done
    assert "declares no wipe" in verdict.reason
    assert sanitizes(room, "n0007", 0) == []
