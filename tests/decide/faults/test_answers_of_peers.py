"""What public projects hold their readers to: their answer, ours, and the reason where the two differ."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

PEERS = yaml.safe_load((Path(__file__).parent / "peers.yaml").read_text())
CASES = [case for cases in PEERS.values() for case in cases]
MEANS = {
    "NONE": {"none"},
    "nothing": set(),
    "not fatal": {"none"},
    "fatal": {"reset", "reboot"},
    "COMPONENT_RESET": {"reset"},
    "RESTART_BM": {"reboot"},
    "CONTACT_SUPPORT": {"ticket"},
}


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_our_answer_is_the_one_in_the_table(case, tell):
    lines = [f"[ 1000.5] {line}" for line in ("usb 1-1: new device", *case["line"].split("\n"))]
    document = tell(*lines)
    if case["ours"] == "uncounted":
        assert (document["faults"], bool(document["uncounted"])) == ([], True)
    else:
        assert {fault["fault"]: fault["action"] for fault in document["faults"]} == case["ours"]
        assert document["uncounted"] == ""


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_a_reason_stands_where_the_two_differ_and_nowhere_else(case):
    theirs, ours = case["theirs"], case["ours"]
    if theirs in MEANS:
        same = ours != "uncounted" and set(ours.values()) <= MEANS[theirs] and (bool(ours) == (theirs != "nothing"))
    else:
        number, _, gpu = theirs.partition(" on ")
        same = gpu in case["line"] and all(name.startswith(f"gpu.xid.{number}") for name in ours)
    assert same == ("differs" not in case)
