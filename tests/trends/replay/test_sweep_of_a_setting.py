"""`assay replay --sweep`: one history under many values of one number of the policy, as a table, JSON and a picture."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from replay_world import HOUR, clear, fault
from test_replay_command import DEFAULT, replay

from assay.model.errors import AssayError
from assay.trends.replay import policy_sweep
from assay.trends.replay.policy_sweep import find_policy_value, parse_sweep, replace_policy_value, sweep_policy

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def events(tmp_path):
    """Sixteen nodes of one pool lose a GPU, one an hour, each for two days."""
    file = tmp_path / "events.jsonl"
    nodes = [f"x{number:02}" for number in range(16)]
    shown = [fault(number * HOUR, name, "gpu.missing") for number, name in enumerate(nodes)]
    shown += [clear((number + 48) * HOUR, name, "gpu.missing") for number, name in enumerate(nodes)]
    file.write_text("".join(f"{json.dumps(event)}\n" for event in shown))
    return file


def sweep(events, what, *words, expected=0):
    answer = replay("--policy", DEFAULT, "--events", events, "--sweep", what, *words)
    assert answer.returncode == expected, answer.stderr
    assert "Traceback" not in answer.stderr
    return answer


def test_the_curve_trades_time_out_for_exposure(events):
    document = json.loads(sweep(events, "limits.pool_percent=5..95:15", "--format", "json").stdout)
    curve = document["sweep"]
    assert (curve["path"], curve["current"]) == ("limits.pool_percent", 25)
    assert [point["value"] for point in curve["points"]] == [5, 20, 35, 50, 65, 80, 95]
    out = [point["costs"]["out_node_hours"] for point in curve["points"]]
    exposed = [point["costs"]["catastrophic_node_hours"] for point in curve["points"]]
    assert out == sorted(out)
    assert exposed == sorted(exposed, reverse=True)
    assert out[0] < out[-1]
    assert exposed[0] > exposed[-1]


def test_a_point_of_the_curve_is_what_a_replay_of_that_policy_says(events, tmp_path):
    (tmp_path / "narrow.yaml").write_text(
        "kind: LifecyclePolicy\nname: narrow\nextends: default\nlimits: {pool_percent: 10}\n"
    )
    document = json.loads(sweep(events, "limits.pool_percent=10..10", "--format", "json").stdout)
    alone = replay("--policy", tmp_path / "narrow.yaml", "--events", events, "--format", "json")
    (point,) = document["sweep"]["points"]
    whole = json.loads(alone.stdout)
    assert document["until"] == whole["until"]
    assert point["costs"] == whole["costs"]


def test_people_get_a_table_in_which_equal_neighbours_share_a_row(events):
    said = sweep(events, "ladder.window_hours=100..120:4").stdout
    assert "ladder.window_hours is 168 now" in said
    assert "  100 to 120  " in said
    assert "◂" in sweep(events, "limits.pool_percent=20..30:5").stdout
    assert "weights: " in said


def test_the_picture_has_both_sides_and_the_value_of_today(events, tmp_path):
    file = tmp_path / "curve.svg"
    sweep(events, "limits.pool_percent=5..95:15", "--svg", file)
    picture = ElementTree.fromstring(file.read_text())
    curves = {line.get("class"): line.get("points").split() for line in picture.iter(f"{SVG}polyline")}
    assert set(curves) == {"closed", "exposed", "catastrophic"}
    assert {len(points) for points in curves.values()} == {7}
    heights = {name: [float(point.split(",")[1]) for point in points] for name, points in curves.items()}
    assert heights["closed"][0] > heights["closed"][-1], "more time out further up"
    assert heights["exposed"][0] < heights["exposed"][-1]
    said = [text.text for text in picture.iter(f"{SVG}text")]
    assert "now: 25" in said
    assert "limits.pool_percent of policy default: the cost in node-hours" in said


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("limits.pool_persent=1..50", "did you mean limits.pool_percent"),
        ("pool_percent=1..50", "did you mean limits.pool_percent"),
        ("limits=1..5", "has no number limits"),
        ("states.production.in_service=0..1", "has no number states.production.in_service"),
        ("limits.pool_percent=0..10", "limits.pool_percent cannot be 0"),
        ("limits.reboots_per_hour=1..2:0.5", "limits.reboots_per_hour cannot be 1.5"),
        ("limits.effects_at_once.rack=60..70", "limits.effects_at_once.rack cannot be 65"),
        ("limits.pool_percent", "is no sweep"),
        ("limits.pool_percent=5..1", "is no sweep"),
        ("limits.pool_percent=1..5:0", "is no sweep"),
        ("limits.pool_percent=a..b", "is no sweep"),
        ("limits.pool_percent=1..nan", "is no sweep"),
        ("limits.pool_percent=1..inf", "is no sweep"),
        ("limits.pool_percent=1..50:0.001", "49,001 values"),
    ],
)
def test_a_sweep_that_names_no_number_ends_with_2(events, what, says):
    answer = sweep(events, what, expected=2)
    assert answer.stdout == ""
    assert says in answer.stderr


def test_options_that_exclude_each_other_are_told(events, tmp_path):
    alone = replay("--policy", DEFAULT, "--events", events, "--svg", tmp_path / "curve.svg")
    assert alone.returncode == 2
    assert "add --sweep" in alone.stderr
    both = sweep(events, "limits.pool_percent=1..2", "--against", DEFAULT, expected=2)
    assert "leave one of the two out" in both.stderr
    nowhere = sweep(events, "limits.pool_percent=1..2", "--svg", tmp_path / "no" / "curve.svg", expected=2)
    assert "cannot be written" in nowhere.stderr


def test_a_number_that_the_policy_leaves_to_its_default_can_be_swept(rules):
    assert find_policy_value(rules.policy, "effects.reboot.waits_minutes.0") == 2
    assert find_policy_value(rules.policy, "reopen_days") == 30
    assert replace_policy_value(rules.policy, "reopen_days", 7).reopen_days == 7
    changed = replace_policy_value(rules.policy, "effects.zap.waits_minutes.0", 9)
    assert changed.effects["zap"].waits_minutes[0] == 9
    assert rules.policy.effects["zap"].waits_minutes[0] == 5, "the policy itself stays"
    with pytest.raises(AssayError, match="has no number"):
        replace_policy_value(rules.policy, "name", 7)


def test_several_processes_give_the_answer_of_one(events, rules, assumptions, monkeypatch, played):
    from assay.trends.replay.policy_costs import assume_jobs

    shown = [json.loads(line) for line in events.read_text().splitlines()]
    costs = assume_jobs(assumptions, "", history_says_use=False)
    request = parse_sweep("limits.pool_percent=5..50:15")

    def run(value):
        from dataclasses import replace

        policy = replace_policy_value(rules.policy, request.path, value)
        return played(shown, {}, replace(rules, policy=policy)).tally

    one, end = sweep_policy(request.values, run, costs, in_one_process=True)
    monkeypatch.setattr(policy_sweep, "WORTH_A_PROCESS_S", 0)
    monkeypatch.setattr(policy_sweep, "_count_cpus", lambda: 2)
    assert sweep_policy(request.values, run, costs) == (one, end)
