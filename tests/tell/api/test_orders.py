"""Orders of visitors: in their name, with a reason, once however often they are sent, and only by those who may."""

from __future__ import annotations

from typing import Any, get_args
from urllib.parse import urlencode

import pytest
from starlette.routing import Route

from assay.act.orders.visitor_orders import NodeOrderName
from assay.model.decision import Decision, DecisionCause
from assay.model.entries.node_entries import DecisionEntry
from assay.model.specs.trust_rules import TrustRules
from assay.tell.api.order_routes import routes
from assay.tell.server.app_state import AppState
from tests.tell.asgi_calls import Caller, Reply

NODES, ROLLOUTS = "/api/v1/nodes", "/api/v1/rollouts"


def position(state: AppState) -> int:
    return state.context.ledger.head()


def order(caller: Caller, node: str, name: str, after: int, **more: Any) -> Reply:
    body = {"order": name, "reason": "RCA with the vendor", "after": after, **more}
    return caller.post(f"{NODES}/{node}/orders", body, content_type="application/json")


def kinds(state: AppState, node: str, after: int) -> list[tuple[str, str, str]]:
    entries = state.context.ledger.entries(node, after=after)
    return [(one.kind, one.body["who"], one.body["reason"]) for one in entries]


def test_an_order_is_recorded_once_in_the_visitors_name_however_often_it_is_sent(ann: Caller, state: AppState) -> None:
    seen = position(state)
    replies = [order(ann, "n0008", "hold", seen, **{"for": "3d"}) for _ in range(3)]
    assert [(one.status, one.json["recorded"]) for one in replies] == [(200, True), (200, False), (200, False)]
    assert kinds(state, "n0008", seen) == [("hold", "ann", "RCA with the vendor")]
    assert ann.get(f"{NODES}/n0008").json["node"]["held_by"] == "ann"
    released = position(state)
    assert order(ann, "n0008", "release", released).json["recorded"]
    replayed = order(ann, "n0008", "hold", seen, **{"for": "3d"})
    assert replayed.status == 409, "the first order does not act again after its release"
    assert [kind for kind, *_ in kinds(state, "n0008", seen)] == ["hold", "release"]


def test_somebody_elses_order_is_seen_before_ones_own_acts(ann: Caller, state: AppState) -> None:
    seen = position(state)
    assert order(ann, "n0010", "hold", seen).status == 200
    late = order(ann, "n0010", "release", seen, reason="done")
    assert (late.status, "since you looked" in late.json["error"]) == (409, True)


@pytest.mark.parametrize(
    ("who", "name", "status"),
    [
        ("vic", "hold", 403),
        ("acme", "hold", 403),
        ("tim", "hold", 403),
        ("tim", "certify", 200),
        ("ann", "release", 200),
        ("ann", "certify", 200),
    ],
)
def test_who_may_order_what(stranger: Caller, state: AppState, who: str, name: str, status: int) -> None:
    node = {"tim": "n0001", "ann": "n0002"}.get(who, "n0004") if name == "certify" else "n0004"
    seen = position(state)
    assert order(stranger.showing(f"token-of-{who}"), node, name, seen).status == status
    expected = [("certified", who, "RCA with the vendor")] if status == 200 and name == "certify" else []
    assert kinds(state, node, seen) == expected


def test_a_token_that_reads_gives_no_order_by_any_route(stranger: Caller, ann: Caller, state: AppState) -> None:
    """It is what a pull request's CI shows: who steals it there learns the state and changes nothing."""
    vic, seen, names = stranger.showing("token-of-vic"), position(state), get_args(NodeOrderName)
    assert vic.get(NODES).status == 200
    posts = [route.path for route in routes(state) if isinstance(route, Route) and "POST" in (route.methods or ())]
    assert len(posts) >= 6
    for path in posts:
        place = path.replace("{name}", "n0004").replace("{id}", "nothing")
        for name in names:
            body = {"order": name, "reason": "x", "after": seen}
            assert vic.post(place, body).status == 403, (place, name)
        assert ann.post(place, body).status in (404, 409, 422), "an operator is let in"
    assert position(state) == seen


def test_a_customer_does_not_learn_by_orders_which_nodes_there_are(acme: Caller, state: AppState) -> None:
    replies = {order(acme, node, "hold", 0).body for node in ("n0007", "n0020", "nobody")}
    assert len(replies) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"reason": ""},
        {"reason": "x" * 501},
        {"order": "reflash"},
        {"after": -1},
        {"after": "latest"},
        {"who": "somebody else"},
        {"for": "x" * 17},
    ],
)
def test_an_order_that_makes_no_sense_is_refused(ann: Caller, state: AppState, wrong: dict[str, Any]) -> None:
    seen = position(state)
    body = {"order": "hold", "reason": "because", "after": seen, **wrong}
    assert ann.post(f"{NODES}/n0004/orders", body).status == 422
    assert position(state) == seen


def test_a_body_that_is_too_long_or_no_json_is_refused(ann: Caller) -> None:
    assert ann.post(f"{NODES}/n0004/orders", b"x" * 5000).status == 413
    assert ann.post(f"{NODES}/n0004/orders", b"{").status == 422
    assert ann.post(f"{NODES}/n0004/orders", b"\xff", content_type="application/x-www-form-urlencoded").status == 422
    assert ann.post(f"{NODES}/nobody/orders", {"order": "hold", "reason": "x", "after": 0}).status == 404


def test_a_form_leads_back_to_its_page(ann: Caller, state: AppState) -> None:
    seen = position(state)
    form = urlencode({"order": "hold", "reason": "<b>\r\nlook</b>", "after": seen, "for": "2h"}).encode()
    reply = ann.post(f"{NODES}/n0011/orders", form, content_type="application/x-www-form-urlencoded")
    assert (reply.status, reply.headers["location"]) == (303, "/nodes/n0011")
    assert kinds(state, "n0011", seen) == [("hold", "ann", "<b> look</b>")]


def test_a_rollout_is_paused_and_resumed_once(ann: Caller, stranger: Caller) -> None:
    [rollout] = ann.get(ROLLOUTS).json["rollouts"]
    path, seen = f"{ROLLOUTS}/{rollout['id']}/orders", ann.get(ROLLOUTS).json["position"]
    pause = {"order": "pause", "reason": "the canary looks odd", "after": seen}
    assert stranger.showing("token-of-tim").post(path, pause).status == 403
    assert [ann.post(path, pause).json["recorded"] for _ in range(2)] == [True, False]
    paused = ann.get(ROLLOUTS).json
    assert paused["rollouts"][0]["paused_by"]["who"] == "ann"
    assert ann.post(path, {"order": "resume", "reason": "it is well", "after": paused["position"]}).json["recorded"]
    assert ann.post(path, pause).status == 409, "a replayed pause does not pause again"
    assert ann.post(f"{ROLLOUTS}/nothing/orders", pause).status == 404
    assert ann.get(ROLLOUTS).json["rollouts"][0]["status"] == "running"


def test_a_visitor_says_yes_to_what_waits_and_to_nothing_else(ann: Caller, stranger: Caller, state: AppState) -> None:
    waits = DecisionCause("trust", "suggest reboot", "waits for a person's yes: reboot")
    rules = state.context.fleet.policy.model_copy(update={"trust": TrustRules(fleet="suggest")})
    state.context.fleet.policies[rules.name] = rules  # type: ignore[index]
    state.context.fleet.__dict__.pop("trust", None)
    made = Decision("d-trust", "n0004", "production", "production-reboot", "record", "p.yaml:1 x", "wait", (waits,))
    state.context.ledger.append(DecisionEntry.from_decision(made).make_entry("d-trust", state.context.now, "n0004"))
    seen = position(state)
    assert order(ann, "n0004", "approve", seen, decision="nothing").status == 409
    assert order(stranger.showing("token-of-tim"), "n0004", "approve", seen, decision="d-trust").status == 403
    assert order(ann, "n0004", "approve", seen, decision="d-trust").json["recorded"]
    assert kinds(state, "n0004", seen) == [("approved", "ann", "RCA with the vendor")]
    told = ann.get("/api/v1/trust").json
    [wait] = [one for one in told["waits"] if one["id"] == "d-trust"]
    assert (wait["node"], wait["kind"], wait["undo"]) == ("n0004", "decision", "nothing undoes reboot")
    assert "said yes" in wait["said"]
