"""People's orders: hold, release, move and certify, with who and why; a repeated order is recorded once."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.act.orders.orders import parse_hold_end
from assay.decide.moves.decide import propose_hold_actions
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_projection import project_node_states
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.errors import AssayError

BECAUSE = ("--reason", "bisecting a kernel bug")
NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)


def test_a_word_about_several_nodes_is_written_for_each_with_who_and_why(ann):
    told = ann.reads("hold", "n[0003-0004]", *BECAUSE, "--who", "bob")["words"]
    assert [(one["node"], one["new"], one["entry"]["kind"], one["entry"]["body"]["who"]) for one in told] == [
        (node, True, "hold", "bob") for node in ("n0003", "n0004")
    ]
    assert {
        node: story.hold.who for node, story in project_node_states(ann.ledger().entries()).items() if story.hold
    } == {
        "n0003": "bob",
        "n0004": "bob",
    }


def test_where_one_node_refuses_nothing_is_written_of_any(ann):
    ann.types("hold", "n0003", *BECAUSE)
    told = ann.is_refused("move", "n0004", "n0003", "draining", *BECAUSE)
    assert "n0003 is held by ann" in told
    assert "nothing was recorded for the other 1 either" in told
    assert "move" not in ann.kinds("n0004")


@pytest.mark.parametrize(
    "words",
    [
        ("hold", "n0003", *BECAUSE),
        ("hold", "n0003", *BECAUSE, "--for", "3d"),
        ("hold", "n0003", *BECAUSE, "--until", "2999-01-01"),
        ("move", "n0003", "draining", *BECAUSE),
        ("move", "n0003", "draining", "--now", *BECAUSE),
        ("certify", "n0001", *BECAUSE),
    ],
    ids=" ".join,
)
def test_what_is_typed_twice_happens_once_and_says_so(words, ann):
    ann.types(*words)
    before = ann.kinds(words[1])
    assert "already" in ann.types(*words)
    assert ann.kinds(words[1]) == before


def test_two_people_who_type_at_the_same_moment_add_one_line(ann, monkeypatch):
    ann.types("move", "n0003", "draining", *BECAUSE)
    before = list(project_node_states(ann.ledger().entries(kinds=["node.enrolled"])).values())
    monkeypatch.setattr("assay.cli.workspace.Workspace.read_node_states", lambda desk: before)
    read = Ledger.entries

    def read_before_the_first(ledger, *of, **how):
        return [] if "move" in how.get("kinds", ()) else read(ledger, *of, **how)

    monkeypatch.setattr(Ledger, "entries", read_before_the_first)
    assert "nothing was added" in ann.types("move", "n0003", "draining", *BECAUSE)


def test_a_move_that_the_policy_does_not_draw_is_refused_with_where_the_node_may_go(ann):
    told = ann.is_refused("move", "n0003", "rma", *BECAUSE)
    assert "has no transition for n0003 from production to rma" in told
    assert "from production it may go to " in told
    assert "draining" in told
    assert "did you mean draining?" in ann.is_refused("move", "n0003", "drainin", *BECAUSE)


def test_a_node_that_is_there_is_not_moved_there_and_one_that_was_asked_away_may_be_asked_to_stay(ann):
    assert "is already in production" in ann.types("move", "n0003", "production", *BECAUSE)
    assert ann.kinds("n0003") == ["node.enrolled"]
    ann.types("move", "n0003", "draining", *BECAUSE)
    assert "stays in production" in ann.types("move", "n0003", "production", *BECAUSE)
    assert project_node_states(ann.ledger().entries())["n0003"].move_request is None
    assert "is ordered from" in ann.types("move", "n0003", "draining", *BECAUSE), "asked anew, it is a new word"
    assert ann.kinds("n0003").count("move") == 3


def test_a_held_node_is_not_moved_until_it_is_released(ann):
    ann.types("hold", "n0003", *BECAUSE)
    assert "assay release n0003" in ann.is_refused("move", "n0003", "draining", *BECAUSE)
    ann.types("release", "n0003", "--reason", "found it")
    ann.types("move", "n0003", "draining", *BECAUSE)
    assert project_node_states(ann.ledger().entries())["n0003"].move_request.to == "draining"


def test_that_a_hold_will_end_is_said_before_and_when_it_does(ann):
    ann.types("hold", "n0003", *BECAUSE, "--for", "4d")
    fleet = load_fleet(ann.root)
    (policy,) = fleet.policies.values()
    story = project_node_states(ann.ledger().entries())["n0003"]
    view = NodeSnapshot(fleet.nodes["n0003"], fleet.profile_of("n0003"), story)
    begun = datetime.fromisoformat(story.hold.at)

    def said(hours: float) -> list[str]:
        return [
            wish.rule_name
            for wish in propose_hold_actions(FleetSnapshot(begun + timedelta(hours=hours), policy, (view,)), view)
        ]

    assert said(71) == []
    assert "hold-ends-soon" in said(73)
    assert said(97) == ["hold-ends"]


def test_the_end_of_a_hold_may_be_moved_by_whoever_holds(ann):
    ann.types("hold", "n0003", *BECAUSE, "--for", "12h")
    ann.types("hold", "n0003", *BECAUSE, "--for", "2d")
    held = project_node_states(ann.ledger().entries())["n0003"].hold
    assert datetime.fromisoformat(held.until) - datetime.fromisoformat(held.at) > timedelta(hours=40)
    assert "already held by ann" in ann.is_refused("hold", "n0003", *BECAUSE, "--who", "bob")


def test_a_hold_that_was_released_can_be_taken_again(ann):
    for _ in range(2):
        ann.types("hold", "n0003", *BECAUSE)
        ann.types("release", "n0003", "--reason", "done")
    assert ann.kinds("n0003") == ["node.enrolled", "hold", "release", "hold", "release"]


def test_a_word_without_a_reason_is_not_taken_from_anybody(ann):
    for verb in ("move n0003 draining", "operations start zap n0003", "certify n0001", "release n0003"):
        assert "a reason is missing" in ann.is_refused(*verb.split(), "--reason", " ")


@pytest.mark.parametrize(
    "words", [("--for", "soon"), ("--for", "0h"), ("--until", "tomorrow"), ("--until", "2020-01-01")]
)
def test_an_end_that_is_none_is_refused_with_how_to_write_it(words, ann):
    assert "hold" not in ann.is_refused("hold", "n0003", *BECAUSE, *words).split("\n")[0]
    assert ann.kinds("n0003") == ["node.enrolled"]


@given(st.integers(1, 9999), st.sampled_from("mhdw"))
def test_a_span_ends_so_long_after_the_hold_began_and_never_before_it(count, unit):
    seconds = {"m": 60, "h": 3600, "d": 86400, "w": 604800}[unit] * count
    assert parse_hold_end("", f"{count}{unit}", NOW, NOW) == (NOW + timedelta(seconds=seconds)).isoformat(
        timespec="seconds"
    )


@given(st.text(max_size=8))
def test_whatever_is_typed_as_an_end_is_a_time_to_come_or_trouble(text):
    for words in ((text, ""), ("", text)):
        try:
            end = parse_hold_end(*words, NOW, NOW)
        except AssayError:
            continue
        assert not end or datetime.fromisoformat(end) > NOW


def test_the_word_of_a_person_is_in_the_ledger_of_an_url_too(ann, monkeypatch, tmp_path):
    other = tmp_path / "elsewhere.sqlite"
    Ledger.open(other).append(*ann.ledger().entries())
    monkeypatch.setenv("ASSAY_LEDGER", f"sqlite:///{other}")
    ann.types("hold", "n0003", *BECAUSE)
    assert Ledger.open(other).entries("n0003")[-1].kind == "hold"
    assert ann.ledger().entries("n0003")[-1].kind == "node.enrolled"


@pytest.mark.slow
def test_a_word_whose_writer_is_killed_is_there_once_or_not_and_once_after_it_is_typed_again(ann):
    words = [sys.executable, "-m", "assay", "move", "n0003", "n0004", "draining", *BECAUSE, "--fleet", str(ann.root)]
    for number in range(12):
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.1 * number)
        child.kill()
        child.wait()
        asked = [entry.node for entry in ann.ledger().entries(kinds=["move"])]
        assert asked in ([], ["n0003", "n0004"]), "of both nodes or of none"
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    assert [entry.node for entry in ann.ledger().entries(kinds=["move"])] == ["n0003", "n0004"]
