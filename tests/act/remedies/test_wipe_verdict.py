"""What counts as wiped: only marked blocks that were read and hold no marker, behind a log that says so."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from assay.act.remedies.node_wipe import (
    DriveReading,
    find_obstacle,
    fold_wipe,
    judge_order,
    list_keeping_users,
    list_release_commands,
    make_wipe_entry,
)
from assay.model.entries.effects import WipeMissedEntry, WipeOrderedEntry
from assay.model.specs.node.host_settings import WIPE_METHODS, WipeSpec

SPEC = WipeSpec(unmount=["/data"], source="a test")
WIPED: dict[str, Any] = {
    "name": "nvme0",
    "serial": "S1",
    "model": "SAMSUNG PM9A3",
    "transport": "pcie",
    "methods": WIPE_METHODS,
    "log_status": "completed",
    "log_action": "sanitize-crypto",
    "users": (),
    "offsets": {"nvme0n1": [0, 4096]},
    "marked": 0,
    "doubts": {},
}


def drive(**more: Any) -> DriveReading:
    return DriveReading(**WIPED | more)


def order(method: str = "sanitize-crypto") -> WipeOrderedEntry:
    return WipeOrderedEntry("e1", "S1", "SAMSUNG PM9A3", "nvme0", method, "ab" * 32, 2)


def test_a_drive_is_wiped_only_by_blocks_and_log_together() -> None:
    assert judge_order(drive(), order()).standing == "wiped"
    assert judge_order(drive(marked=1), order()).standing == "not wiped"
    assert judge_order(drive(log_status="never"), order()).standing == "not wiped"
    assert judge_order(drive(log_status="failed"), order()).standing == "not wiped"
    assert judge_order(drive(log_action="sanitize-overwrite"), order()).standing == "not wiped", "another sanitize"
    assert judge_order(drive(log_status="in progress"), order("format-erase")).standing == "under way"
    assert judge_order(drive(log_status="never"), order("format-erase")).standing == "wiped"
    assert judge_order(drive(marked=2), order("format-erase")).standing == "not wiped"


@given(
    st.sampled_from(WIPE_METHODS),
    st.dictionaries(st.sampled_from(["log", "blocks"]), st.text(), min_size=1),
    st.integers(0, 2),
    st.sampled_from(["never", "completed", "in progress", "failed"]),
)
def test_what_cannot_be_read_never_proves_a_wipe(method: str, doubts: dict[str, str], marked: int, status: str) -> None:
    offsets = {} if "blocks" in doubts else WIPED["offsets"]
    seen = drive(doubts=doubts, offsets=offsets, marked=marked, log_status="" if "log" in doubts else status)
    if method.startswith("sanitize") or "blocks" in doubts:
        assert judge_order(seen, order(method)).standing != "wiped"


def test_a_drive_without_a_block_proves_nothing() -> None:
    assert judge_order(drive(offsets={}), order()).standing == "unknown"


def test_only_a_drive_that_nothing_else_uses_may_be_wiped() -> None:
    data = (("mount", "/data"), ("holder", "md1"))
    assert find_obstacle(drive(users=data), SPEC) == ""
    assert list_release_commands([drive(users=data)] * 2) == [["umount", "/data"], ["mdadm", "--stop", "/dev/md1"]]
    assert find_obstacle(drive(users=(("mount", "/"),)), SPEC) == "it is in use: mounted at /"
    assert "swap on" in find_obstacle(drive(users=(("swap", "/dev/nvme0n1p2"),)), SPEC)
    assert "part of dm-0" in find_obstacle(drive(users=(("holder", "dm-0"),)), SPEC)
    root = (("mount", "/"), ("holder", "md0"))
    assert list_keeping_users(drive(users=root), SPEC) == list(root), "the array below the system is not stopped"


def test_a_drive_that_is_not_known_well_enough_may_not_be_wiped() -> None:
    for part in ("serial", "model", "transport", "users"):
        assert "cannot be read: dark" in find_obstacle(drive(doubts={part: "dark"}), SPEC)
    assert "it is empty" in find_obstacle(drive(serial=""), SPEC)
    assert "it knows: dark" in find_obstacle(drive(methods=(), doubts={"methods": "dark"}), SPEC)
    assert "leaves out SAMSUNG" in find_obstacle(drive(), SPEC.model_copy(update={"models": ["KIOXIA*"]}))


@pytest.mark.parametrize("path", ["/", "/boot", "/boot/efi", "/boot/", "/var/.", "data", "/a b"])
def test_a_wipe_may_not_unmount_the_system(path: str) -> None:
    with pytest.raises(ValidationError):
        WipeSpec(unmount=[path], source="a test")


def test_the_record_of_an_effect_holds_its_newest_order_and_no_other_effects() -> None:
    missed = WipeMissedEntry("e1", "S1", "SAMSUNG PM9A3", "nvme0", "sanitize-crypto", "it failed")
    first, second = order(), order("sanitize-block")
    other = WipeOrderedEntry("e2", "S1", "SAMSUNG PM9A3", "nvme0", "format-erase", "cd" * 32, 2)
    entries = [make_wipe_entry(one, "2026-11-24T02:00:00+00:00", "n1") for one in (first, missed, second, other)]
    (record,) = fold_wipe(entries, "e1").values()
    assert record.order == second
    assert record.missed == {"sanitize-crypto": "it failed"}
    assert record.is_open
    assert not fold_wipe(entries[:2], "e1")["S1"].is_open
