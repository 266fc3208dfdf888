"""`assay operations`: an order by name, recorded once for its key, followed, and taken back."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from assay.decide.state.node_projection import project_node_states
from assay.decide.state.operation_record import OPERATIONS

BECAUSE = ("--reason", "bisecting a kernel bug")


def test_the_same_key_is_one_operation_which_is_shown_and_taken_back(ann):
    words = ("operations", "start", "reboot", "n[0003-0004]", "--key", "ticket-17", *BECAUSE)
    made = ann.reads(*words)
    assert (made["state"], made["to"], [each["node"] for each in made["nodes"]]) == (
        "accepted",
        "production-reboot",
        ["n0003", "n0004"],
    )
    assert ann.reads(*words)["id"] == made["id"]
    assert ann.kinds("n0003") == ["node.enrolled", "move"]
    assert "another operation" in ann.is_refused("operations", "start", "cordon", *words[3:])
    assert f"{made['id']}  reboot 2 nodes (n0003, n0004): accepted" in ann.types("operations")
    assert ann.reads("operations", "show", made["id"][:8])["id"] == made["id"]
    assert ann.reads("operations", "cancel", made["id"], *BECAUSE)["state"] == "cancelled"
    assert project_node_states(ann.ledger().entries())["n0003"].move_request is None
    assert "no operation is under way" in ann.types("operations")
    assert "cancelled" in ann.types("operations", "--all")


def test_where_one_node_refuses_nothing_is_recorded_of_any(ann):
    refusal = ann.is_refused("operations", "start", "uncordon", "n[0003-0004]", *BECAUSE)
    assert "n0003 is in production: uncordon is for nodes in cordoned" in refusal
    assert ann.kinds("n0003") == ["node.enrolled"]
    assert "there is no rack r99" in ann.is_refused("operations", "start", "maintenance", "--rack", "r99", *BECAUSE)


def test_zap_and_wipe_go_to_the_states_that_the_policy_names_for_them(ann):
    assert ann.reads("operations", "start", "zap", "n0002", *BECAUSE)["to"] == "zap"
    assert ann.reads("operations", "start", "wipe", "n0003", "--within", "4h", *BECAUSE)["to"] == "wipe"
    [order] = ann.ledger().entries("n0003", kinds=["move"])
    assert order.body["within_hours"] == 4
    assert "from onboard it may go to seatrial" in ann.is_refused("operations", "start", "zap", "n0001", *BECAUSE)
    spec = ann.root / "specs/nodes/hgx-h100.yaml"
    text = spec.read_text()
    spec.write_text(text[: text.index("wipe:")] + text[text.index("psus:") :])
    assert "its spec hgx-h100 declares no wipe" in ann.is_refused("operations", "start", "wipe", "n0004", *BECAUSE)


def test_what_would_have_begun_in_the_past_is_refused_as_such(ann):
    times = ("--at", "2020-01-01T00:00:00Z", "--until", "2020-01-01T04:00:00Z")
    refusal = ann.is_refused("operations", "start", "reboot", "n0003", *times, *BECAUSE)
    assert "2020-01-01 00:00 UTC is in the past: it is " in refusal


@pytest.mark.slow
def test_an_operation_whose_writer_is_killed_is_there_once_or_not_and_once_after_it_is_ordered_again(ann):
    words = [sys.executable, "-m", "assay", "operations", "start", "reboot", "n0003", "n0004", "--key", "ticket-17"]
    words += [*BECAUSE, "--fleet", str(ann.root)]
    for number in range(12):
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.15 * number)
        child.kill()
        child.wait()
        asked = [entry.node for entry in ann.ledger().entries(kinds=["move"])]
        assert asked in ([], ["n0003", "n0004"]), "for both nodes or for none"
    for _ in range(2):
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    [record] = OPERATIONS.fold(ann.ledger().entries(kinds=OPERATIONS.kinds)).operations.values()
    assert [(each.node, each.state) for each in record.nodes] == [("n0003", "accepted"), ("n0004", "accepted")]
