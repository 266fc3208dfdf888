"""The graph of a policy: every edge with what leads along it, in the picture of the documentation."""

from __future__ import annotations

from xml.etree import ElementTree

from tests.decide.conftest import policy  # noqa: F401 — the policy is the real one
from tests.support.places import ROOT
from tools.lifecycle_picture import STYLE, draw_policy_svg, list_policy_edges


def test_every_edge_says_what_leads_along_it(policy):  # noqa: F811
    said = {(way.origin, way.target): way.labels for way in list_policy_edges(policy)}
    assert said.keys() == {(origin, target) for origin, targets in policy.edges.items() for target in targets}
    assert said["zap", "zapfail"] == ("fails", "an action fails", "after 6 h")
    assert said["onboard", "seatrial"] == ("certified",)
    assert said["test", "production"] == ("passes, after 24 h",)
    assert said["draining", "triage"] == ("idle", "certified")
    assert said["production", "production-reboot"] == ("fault: reboot",)
    assert said["production", "production-gpu-reset"] == ("fault: reset",)
    assert said["production", "draining"] == ("fault: triage, rma",)
    assert said["triage", "rma"] == ("hardware fault again",)


def test_an_edge_that_no_rule_uses_is_for_hands(policy):  # noqa: F811
    drawn = policy.model_copy(update={"edges": {**policy.edges, "debug": ["onboard", "rma"]}})
    assert next(way.labels for way in list_policy_edges(drawn) if way.target == "rma" and way.origin == "debug") == (
        "by hand",
    )


def test_the_picture_has_every_state_once_and_one_line_for_each_edge(policy):  # noqa: F811
    root = ElementTree.fromstring(draw_policy_svg(policy, STYLE))
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


def test_no_two_boxes_and_no_two_lanes_lie_on_each_other(policy):  # noqa: F811
    root = ElementTree.fromstring(draw_policy_svg(policy, STYLE))
    places = [
        (float(box.get("x")), float(box.get("y")))
        for box in root.iter("{http://www.w3.org/2000/svg}rect")
        if box.get("rx")
    ]
    assert len(set(places)) == len(places) == len(policy.states)
    wide = float(root.get("width"))
    assert all(0 < x < wide - 200 for x, _ in places)


def test_the_picture_of_the_documentation_shows_the_policy_as_it_is(policy):  # noqa: F811
    assert (ROOT / "docs" / "lifecycle.svg").read_text() == draw_policy_svg(policy, STYLE), (
        "draw it again: `python -m tools.lifecycle_picture > docs/lifecycle.svg`"
    )


def test_any_name_of_a_state_is_drawn_as_it_is_written(policy):  # noqa: F811
    odd = 'a "b" <c> & d'
    states = {**policy.states, odd: policy.states["debug"]}
    drawn = policy.model_copy(update={"states": states, "edges": {**policy.edges, odd: ["onboard", odd]}})
    assert odd in [
        text.text
        for text in ElementTree.fromstring(draw_policy_svg(drawn, STYLE)).iter("{http://www.w3.org/2000/svg}text")
    ]
