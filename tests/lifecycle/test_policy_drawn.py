"""The graph of a policy: every edge with what leads along it, in pictures and on the page of the documentation."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from forked_assay import run_assay

from assay.lifecycle.policy_graph import format_mermaid, list_policy_edges
from assay.lifecycle.policy_graph_svg import draw_policy_svg

ROOT = Path(__file__).resolve().parents[2]


def test_every_edge_says_what_leads_along_it(policy):
    said = {(way.origin, way.target): way.labels for way in list_policy_edges(policy)}
    assert said.keys() == {(origin, target) for origin, targets in policy.edges.items() for target in targets}
    assert said["zap", "zapfail"] == ("fails", "an action fails", "after 6 h")
    assert said["onboard", "seatrial"] == ("certified",)
    assert said["test", "production"] == ("passes, after 24 h",)
    assert said["draining", "triage"] == ("idle", "certified")
    assert said["production", "production-reboot"] == ("fault: reset, reboot",)
    assert said["production", "draining"] == ("fault: triage, rma",)
    assert said["triage", "rma"] == ("hardware fault again",)


def test_an_edge_that_no_rule_uses_is_for_hands(policy):
    drawn = policy.model_copy(update={"edges": {**policy.edges, "debug": ["onboard", "rma"]}})
    assert next(way.labels for way in list_policy_edges(drawn) if way.target == "rma" and way.origin == "debug") == (
        "by hand",
    )


def test_the_picture_has_every_state_once_and_one_line_for_each_edge(policy):
    root = ElementTree.fromstring(draw_policy_svg(policy))
    name = "{http://www.w3.org/2000/svg}"
    boxes = [group.findtext(f"{name}text") for group in root.iter(f"{name}g")]
    assert sorted(boxes) == sorted(policy.states)
    assert len([path for path in root.iter(f"{name}path") if path.get("class") == "way"]) == len(
        list_policy_edges(policy)
    )
    served = [
        group.findtext(f"{name}text")
        for group in root.iter(f"{name}g")
        if group.find(f"{name}rect[@class='box service']") is not None
    ]
    assert served == ["production"]


def test_no_two_boxes_and_no_two_lanes_lie_on_each_other(policy):
    root = ElementTree.fromstring(draw_policy_svg(policy))
    places = [
        (float(box.get("x")), float(box.get("y")))
        for box in root.iter("{http://www.w3.org/2000/svg}rect")
        if box.get("rx")
    ]
    assert len(set(places)) == len(places) == len(policy.states)
    wide = float(root.get("width"))
    assert all(0 < x < wide - 200 for x, _ in places)


def test_the_page_of_the_documentation_shows_the_policy_as_it_is(policy):
    page = (ROOT / "docs" / "lifecycle.md").read_text()
    block = page.partition("```mermaid\n")[2].partition("\n```")[0]
    assert block == format_mermaid(policy), (
        "copy what `assay policy graph --format mermaid` prints into docs/lifecycle.md"
    )


def test_the_command_draws_any_policy_and_refuses_what_is_none(tmp_path):
    drawn = run_assay("policy", "graph", "--policy", "specs/lifecycle/default.yaml", cwd=ROOT)
    assert drawn.returncode == 0, drawn.stderr
    assert ElementTree.fromstring(drawn.stdout).tag.endswith("svg")
    mine = tmp_path / "mine.yaml"
    mine.write_text(
        "kind: LifecyclePolicy\nname: mine\nextends: default\nanywhere: null\nlimits: {pool_percent: 400}\n"
    )
    for wrong in (mine, tmp_path / "none.yaml", ROOT / "specs" / "faults" / "gpu.yaml"):
        answer = run_assay("policy", "graph", "--policy", wrong, cwd=ROOT)
        assert (answer.returncode, answer.stdout) == (2, ""), wrong
        assert "Traceback" not in answer.stderr


def test_any_name_of_a_state_is_drawn_as_it_is_written(policy):
    odd = 'a "b" <c> & d'
    states = {**policy.states, odd: policy.states["debug"]}
    drawn = policy.model_copy(update={"states": states, "edges": {**policy.edges, odd: ["onboard", odd]}})
    assert odd in [
        text.text for text in ElementTree.fromstring(draw_policy_svg(drawn)).iter("{http://www.w3.org/2000/svg}text")
    ]
    assert '["a #quot;b#quot; #lt;c> #amp; d"]' in format_mermaid(drawn)
