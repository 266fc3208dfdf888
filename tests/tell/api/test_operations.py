"""Operations: accepted or refused at once, once for each key, and followed to their end by what the ledger says."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from assay.act.orders.operations import begin_due_operations
from assay.adapters.scheduler import PLANNED
from assay.decide.state.operation_record import OPERATIONS, OperationHistory
from assay.model.decision import Decision, DecisionCause
from assay.model.entries.effects import EffectIntentEntry, EffectVerifiedEntry
from assay.model.entries.node_entries import DecisionEntry, NodeReplacedEntry, TransitionEntry
from assay.model.timestamps import format_time, hours, parse_time
from assay.tell.api.conditional_answers import ChangeStream
from assay.tell.messages.scheduler_notices import list_planned_notices
from assay.tell.messages.webhook_notices import find_planned
from assay.tell.server.app_state import AppState
from assay.tell.server.server import build_app
from assay.tell.server.server_certificate import ListenConfig, ServerCertificate
from assay.tell.server.visitor_rights import Visitor
from assay.tell.server.visitor_shares import VisitorShares
from assay.tell.views.calendar import describe_rollout
from assay.tell.views.records import LiveRecords
from tests.tell.asgi_calls import Caller, Reply
from tests.tell.fleet_with_history import ROLLOUT

PATH = "/api/v1/operations"
NODE = "n0016"


def ask(caller: Caller, key: str, node: str = NODE, name: str = "reboot", **more: Any) -> Reply:
    body = {"operation": name, "nodes": [node], "reason": "the driver hangs", "key": key, **more}
    return caller.post(PATH, body, content_type="application/json")


def position(state: AppState) -> int:
    return state.context.ledger.head()


def cancel(caller: Caller, ident: str) -> Reply:
    return caller.post(f"{PATH}/{ident}/cancel", {"reason": "not now"}, content_type="application/json")


def test_the_same_key_is_the_same_operation_and_another_wish_under_it_is_refused(ann: Caller, state: AppState) -> None:
    before = position(state)
    replies = [ask(ann, "key-of-ann-1") for _ in range(3)]
    assert [reply.status for reply in replies] == [202, 200, 200], replies[0].body
    assert len({reply.json["id"] for reply in replies}) == 1
    [entry] = state.context.ledger.entries(after=before)
    assert (entry.kind, entry.node, entry.body["to"], entry.body["who"]) == ("move", NODE, "production-reboot", "ann")
    others = [ask(ann, "key-of-ann-1", name="maintenance"), ask(ann, "key-of-ann-1", now=True)]
    for other in others:
        assert (other.status, other.json["status"]) == (409, 409)
        assert other.headers["content-type"] == "application/problem+json"
        assert "another operation" in other.json["detail"]
    assert ask(ann, "key-of-ann-2").status == 409, "it is ordered already"
    ident = replies[0].json["id"]
    assert ann.get(replies[0].headers["location"]).json == ann.get(f"{PATH}/{ident}").json
    assert [one["id"] for one in ann.get(f"{PATH}?node={NODE}&open=true").json] == [ident]
    assert cancel(ann, ident).json["state"] == "cancelled"
    assert cancel(ann, ident).status == 200, "a second time changes nothing"
    assert [one["id"] for one in ann.get(f"{PATH}?open=true").json] == [ROLLOUT]
    [now] = [one for one in state.records.read_node_states() if one.node == NODE]
    assert now.move_request is None


def test_of_many_at_the_same_time_one_is_recorded(ann: Caller, state: AppState) -> None:
    before, certificate = position(state), ServerCertificate(ListenConfig("127.0.0.1", 0), lambda _: None)
    servers = [replace(state, shares=VisitorShares()) for _ in range(16)]  # each has an event loop of its own
    callers = [replace(ann, app=build_app(server, certificate)) for server in servers]
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda n: ask(callers[n], "key-of-many", f"n00{16 + n % 2}"), range(16)))
    assert sorted({reply.status for reply in replies}) == [200, 202, 409]
    assert position(state) == before + 1
    [ident] = {reply.json["id"] for reply in replies if reply.status != 409}
    assert cancel(ann, ident).status == 200


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"key": "short"}, 422),
        ({"nodes": []}, 422),
        ({"rack": "r1"}, 422),
        ({"operation": "explode"}, 422),
        ({"reason": " "}, 422),
        ({"nodes": ["nobody"]}, 404),
        ({"nodes": [], "rack": "nowhere"}, 404),
        ({"operation": "uncordon"}, 409),
        ({"gpu": [0]}, 422),
        ({"gpus": [-1]}, 422),
        ({"gpus": [0]}, 409),
        ({"operation": "gpu-reset", "gpus": [8]}, 409),
        ({"operation": "power-on"}, 409),
        ({"nodes": ["n0001"]}, 409),
        ({"nodes": [NODE, "n0005"]}, 409),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(
    ann: Caller, state: AppState, wrong: dict[str, Any], status: int
) -> None:
    before = position(state)
    reply = ask(ann, **{"key": "key-of-wrong-1", **wrong})
    assert (reply.status, set(reply.json)) == (status, {"type", "title", "status", "detail", "error"}), reply.body
    assert position(state) == before


def test_customers_order_for_their_own_nodes_what_the_policy_leaves_to_them(
    acme: Caller, ann: Caller, stranger: Caller, state: AppState
) -> None:
    states = state.records.read_node_states()
    theirs = [one.node for one in states if one.pool == "h100-a" and one.state == "production" and not one.hold]
    other = next(one.node for one in states if one.pool != "h100-a")
    assert ask(acme, "key-of-acme-0", theirs[0], "maintenance").status == 409
    strange = {ask(acme, "key-of-acme-0", node).body for node in (other, "nobody")}
    assert len(strange) == 1, "which nodes there are is not theirs to know"
    vic = stranger.showing("token-of-vic")
    assert (vic.get(PATH).status, ask(vic, "key-of-vic-00", theirs[0]).status) == (200, 403)
    held = ask(acme, "key-of-acme-9", "n0005")
    assert (held.status, "RCA" in held.json["detail"]) == (409, False), "who holds it, and why, is not for customers"
    made = [ask(acme, f"key-of-acme-{number}", node) for number, node in enumerate(theirs[-3:], 1)]
    assert [reply.status for reply in made] == [202, 202, 409], "two at a time"
    ours = ask(ann, "key-of-ann-9", theirs[-4], "maintenance").json
    seen = acme.get(PATH).json
    assert {one["id"] for one in seen} == {ROLLOUT, *(reply.json["id"] for reply in made[:2])}
    assert {node["text"] for one in seen for node in one["nodes"]} == {""}
    assert cancel(acme, ours["id"]).status == 404
    for reply in made[:2]:
        assert cancel(acme, reply.json["id"]).json["state"] == "cancelled"
    assert cancel(ann, ours["id"]).json["state"] == "cancelled"


def decide(state: AppState, ident: str, node: str, to: str, timing: Any, order: str, **more: Any) -> None:
    cause = DecisionCause("person", order, "ann asked")
    made = Decision(ident, node, "production", to, timing, "p.yaml:1 person", causes=(cause,), **more)
    state.context.ledger.append(DecisionEntry.from_decision(made).make_entry(ident, state.context.now, node))


def follow(state: AppState, ident: str) -> list[dict[str, Any]]:
    """Return what the stream of an operation tells until it ends by itself."""

    async def admit() -> bool:
        return True

    async def read() -> list[dict[str, Any]]:
        stream, visitor = ChangeStream(state), Visitor("v", "viewer")
        texts = stream.format_operation(visitor, ident, admit)
        return [json.loads(text.partition("data: ")[2]) async for text in texts if "event: operation" in text]

    return asyncio.run(read())


def test_its_record_follows_the_ledger_and_streams_to_its_end(ann: Caller, state: AppState) -> None:
    node, ledger, now = "n0018", state.context.ledger, state.context.now
    made = ask(ann, "key-of-story", node, "cordon").json
    [on_node] = made["nodes"]
    decide(state, "op-w", node, "cordoned", "record", on_node["order"], remedy="wait")
    assert ann.get(f"{PATH}/{made['id']}").json["state"] == "waiting"
    decide(state, "op-i", node, "cordoned", "immediate", on_node["order"])
    ledger.append(TransitionEntry("production", "cordoned", "op-i").make_entry("op-t", now, node))
    assert ann.get(f"{PATH}/{made['id']}").json["state"] == "running"
    assert cancel(ann, made["id"]).status == 409, "it has begun"
    ledger.append(EffectIntentEntry("op-e", "cordon", "op-i").make_entry("op-e1", now, node))
    ledger.append(EffectVerifiedEntry("op-e", "cordon", "closed").make_entry("op-e2", now, node))
    ended = ann.get(f"{PATH}/{made['id']}").json
    assert (ended["state"], ended["nodes"][0]["text"]) == ("succeeded", "cordon: closed")
    entries = ledger.entries(kinds=OPERATIONS.kinds)
    whole = OPERATIONS.fold(entries)
    for cut in range(len(entries)):
        parts = OPERATIONS.fold(entries[cut:], OPERATIONS.fold(entries[:cut], OperationHistory()))
        assert parts == whole, "a process that begins anew reads the same"
    assert ann.get("/api/v1/events?operation=nothing").status == 404
    assert [event["state"] for event in follow(state, made["id"])] == ["succeeded"], "its stream ends with it"


def draw_from(schema: dict[str, Any], document: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return values of a schema of the document, as a client that knows nothing else would make them."""
    if "$ref" in schema:
        return draw_from(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "object":
            fields = {name: draw_from(field, document) for name, field in schema["properties"].items()}
            needed = {name: fields.pop(name) for name in schema["required"]}
            return st.fixed_dictionaries(needed, optional=fields)
        case "array":
            return st.lists(draw_from(schema["items"], document), max_size=3)
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(schema["minimum"], schema["maximum"])
    letters = {"alphabet": st.characters(codec="ascii", min_codepoint=33)} if "pattern" in schema else {}
    return st.text(**letters, min_size=schema.get("minLength", 0), max_size=min(schema.get("maxLength", 30), 30))


JUNK = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.none(), max_size=2)


def test_every_request_that_the_document_describes_gets_an_answer_that_it_describes(
    ann: Caller, state: AppState
) -> None:
    document = ann.get("/api/v1/openapi.json").json
    paths = {path: ways for path, ways in document["paths"].items() if path.startswith(PATH)}
    assert sorted((path, way) for path, ways in paths.items() for way in ways) == [
        (PATH, "get"),
        (PATH, "post"),
        (f"{PATH}/{{id}}", "get"),
        (f"{PATH}/{{id}}/cancel", "post"),
        (f"{PATH}/{{id}}/defer", "post"),
    ]
    serving = [each.node for each in state.records.read_node_states() if each.state == "production" and not each.hold]
    known, answers = ["nothing"], Counter[int]()

    def judge_reply(reply: Reply, described: dict[str, Any]) -> None:
        assert str(reply.status) in described["responses"], reply.body
        [(kind, content)] = described["responses"][str(reply.status)]["content"].items()
        assert reply.headers["content-type"] == kind
        Draft202012Validator({**content["schema"], "components": document["components"]}).validate(reply.json)
        answers[reply.status] += 1
        if reply.status == 202:
            known.append(reply.json["id"])

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def judge(data: st.DataObject) -> None:
        path, way = data.draw(st.sampled_from([(path, way) for path, ways in paths.items() for way in ways]))
        described = paths[path][way]
        address = path.replace("{id}", known[data.draw(st.integers(0, 5)) % len(known)])
        if way == "get":
            fields = {field["name"]: field["schema"] for field in described["parameters"] if field["in"] == "query"}
            query = {name: data.draw(draw_from(schema, document)) for name, schema in fields.items()}
            reply = ann.get(f"{address}?{urlencode(query)}")
        else:
            body = data.draw(draw_from(described["requestBody"]["content"]["application/json"]["schema"], document))
            if "operation" in body:
                body |= data.draw(st.just({}) | st.sampled_from([{"nodes": [node], "rack": ""} for node in serving]))
            body |= data.draw(st.just({}) | st.dictionaries(st.sampled_from([*body, "else"]), JUNK, max_size=1))
            reply = ann.post(address, body, content_type="application/json")
        judge_reply(reply, described)

    judge_reply(ask(ann, "key-of-document", serving[0], "maintenance"), paths[PATH]["post"])
    judge()
    assert {200, 202, 404, 409, 422} <= answers.keys(), answers


def plan(caller: Caller, key: str, node: str, state: AppState, begins_h: float, **more: Any) -> Reply:
    at = parse_time(state.context.now)
    window = {"starts_at": format_time(at + hours(begins_h)), "ends_at": format_time(at + hours(begins_h + 4))}
    return ask(caller, key, node, "maintenance", **{**window, **more})


def test_planned_work_is_told_in_time_and_customers_defer_it_within_bounds(
    acme: Caller, ann: Caller, state: AppState
) -> None:
    states = state.records.read_node_states()
    theirs = [one.node for one in states if one.pool == "h100-a" and one.state == "production" and not one.hold]
    node = theirs[-1]
    assert "72 hours before" in plan(ann, "key-of-plan-0", node, state, 5).json["detail"]
    assert plan(ann, "key-of-plan-0", node, state, 80, ends_at="").status == 422
    assert plan(ann, "key-of-plan-0", node, state, 80, starts_at="soon").status == 409
    made = plan(ann, "key-of-plan-1", node, state, 80)
    assert (made.status, made.json["state"]) == (202, "planned"), made.body
    assert "has maintenance planned" in plan(ann, "key-of-plan-2", node, state, 82).json["detail"]

    ident = made.json["id"]
    seen = acme.get(f"{PATH}/{ident}").json
    assert (seen["state"], seen["reason"], seen["who"]) == ("planned", "the driver hangs", "")
    explained = ann.get(f"/api/v1/nodes/{node}/explain").json
    assert any("maintenance is planned from" in line for line in explained["recorded"])
    calendar = acme.get(f"{PATH}.ics")
    assert f"UID:{ident}@assay" in str(calendar.body)

    def defer(caller: Caller, by_h: float) -> Reply:
        at = format_time(parse_time(made.json["starts_at"]) + hours(by_h))
        body = {"starts_at": at, "reason": "a run ends"}
        return caller.post(f"{PATH}/{ident}/defer", body, content_type="application/json")

    assert cancel(acme, ident).status == 409, "it is not theirs"
    later = defer(acme, 300)
    assert (later.status, later.json["deferred_hours"]) == (200, 300), later.body
    assert defer(acme, 300).status == 200, "a second time changes nothing"
    assert defer(acme, 337).status == 409, "two weeks in all"
    assert defer(acme, 200).status == 409, "to no earlier time"

    context, now = state.context, parse_time(later.json["starts_at"])
    by_name = {one.node: one for one in state.records.read_node_states()}
    begin_due_operations(context.fleet, context.ledger, by_name, now - hours(1))
    assert ann.get(f"{PATH}/{ident}").json["state"] == "planned"
    for _ in range(2):  # a kill between
        begin_due_operations(context.fleet, context.ledger, by_name, now)
    begun = ann.get(f"{PATH}/{ident}").json
    assert (begun["state"], [one["node"] for one in begun["nodes"]]) == ("accepted", [node])
    orders = [entry.body["operation"]["id"] for entry in context.ledger.entries(node, kinds=["move"])]
    assert orders.count(ident) == 1
    assert defer(ann, 400).status == 409, "its time has come"
    assert cancel(ann, ident).json["state"] == "cancelled"


def test_planned_work_whose_window_is_over_when_a_controller_comes_back_never_begins(
    ann: Caller, state: AppState
) -> None:
    states = {one.node: one for one in state.records.read_node_states()}
    node = [one.node for one in states.values() if one.pool == "h100-a" and one.state == "production"][-1]
    made = plan(ann, "key-of-plan-9", node, state, 80).json
    context = state.context
    begin_due_operations(context.fleet, context.ledger, states, parse_time(made["ends_at"]))
    ended = ann.get(f"{PATH}/{made['id']}").json
    assert (ended["state"], ended["nodes"][0]["text"].partition(" at ")[0]) == ("failed", "its window was over")
    orders = [entry.body["operation"]["id"] for entry in context.ledger.entries(node, kinds=["move"])]
    assert made["id"] not in orders


def test_planned_work_is_cancelled_and_webhooks_hear_of_all_of_it(ann: Caller, state: AppState) -> None:
    states = state.records.read_node_states()
    node = [one.node for one in states if one.pool == "h100-a" and one.state == "production" and not one.hold][-2]
    ident = plan(ann, "key-of-plan-8", node, state, 80).json["id"]

    def read(known: dict[str, Any]) -> list[Any]:
        records = [state.records.read_operations(None)[ident]]
        return list(find_planned(records, known, {node: "h100-a"}))

    [item] = read({})
    assert (item["event"], item["node"], item["operation"]) == ("planned", node, ident)
    known = {f"{node} {ident}": item}
    assert read(known) == [], "once"
    assert cancel(ann, ident).json["state"] == "cancelled"
    assert read({}) == [], "who never heard of it hears nothing"
    [item] = read(known)
    assert item["event"] == "dropped"


def test_a_rollout_is_planned_work_of_its_nodes_that_customers_read_and_subscribe_to(
    ann: Caller, acme: Caller, state: AppState
) -> None:
    context = state.context
    rules = context.policy.rollouts.model_copy(update={"lead_hours": 72})
    policies = {name: one.model_copy(update={"rollouts": rules}) for name, one in context.fleet.policies.items()}
    records = LiveRecords(lambda: replace(context, fleet=replace(context.fleet, policies=policies)))
    rollout = records.read_rollouts().rollouts[ROLLOUT]
    told = records.read_operations(None)[ROLLOUT]
    assert (told.operation, told.state, [one.state for one in told.nodes]) == ("rollout", "planned", ["planned"] * 2)
    assert parse_time(told.starts_at) == parse_time(rollout.started_at) + hours(72)
    assert parse_time(told.ends_at) > parse_time(told.starts_at)
    assert records.read_operations(None)[ROLLOUT] == told, "it stays as it is until a node goes"

    seen = acme.get(f"{PATH}/{ROLLOUT}").json
    assert (seen["who"], seen["to"], seen["nodes"][0]["node"]) == ("", "", "n0013")
    assert "firmware" in seen["reason"].lower()
    assert f"UID:{ROLLOUT}@assay" in str(acme.get(f"{PATH}.ics").body)
    assert cancel(ann, ROLLOUT).status == 409, "a rollout is paused, or its commit reverted"

    notices = list_planned_notices(context, {}, [told])
    assert {name: notice.text.partition(" from ")[0] for name, notice in notices.items()} == dict.fromkeys(
        ("n0013", "n0014"), f"{PLANNED}rollout"
    )
    pools = dict.fromkeys(("n0013", "n0014"), "h100-a")
    news = list(find_planned([told], {}, pools))
    assert [(item["event"], item["node"]) for item in news] == [("planned", "n0013"), ("planned", "n0014")]
    known = {f"{item['node']} {ROLLOUT}": item for item in news}
    assert list(find_planned([told], known, pools)) == [], "once"
    member = replace(rollout.members["n0013"], order="move-1", ordered_at=rollout.started_at)
    ended = replace(
        rollout, status="aborted", ended_at=rollout.started_at, members={**rollout.members, "n0013": member}
    )
    dropped = describe_rollout(context.fleet, ended, "")
    assert dropped.state == "cancelled"
    assert [(item["event"], item["node"]) for item in find_planned([dropped], known, pools)] == [("dropped", "n0014")]


def test_customers_defer_a_rollout_on_their_nodes_within_bounds(ann: Caller, acme: Caller, state: AppState) -> None:
    begin = parse_time(ann.get(f"{PATH}/{ROLLOUT}").json["starts_at"])

    def defer(caller: Caller, by_h: float) -> Reply:
        body = {"starts_at": format_time(begin + hours(by_h)), "reason": "a run ends"}
        return caller.post(f"{PATH}/{ROLLOUT}/defer", body, content_type="application/json")

    assert "no longer" in defer(acme, 337).json["detail"]
    later = defer(acme, 300)
    assert (later.status, later.json["starts_at"]) == (200, format_time(begin + hours(300))), later.body
    position = state.context.ledger.head()
    assert defer(acme, 300).status == 200
    assert state.context.ledger.head() == position, "a second time changes nothing"
    told = state.records.read_operations(None)[ROLLOUT]
    assert all(one.deferred_to for one in told.nodes)
    assert parse_time(told.ends_at) > begin + hours(300)
    assert {item["since"] for item in find_planned([told], {}, {"n0013": "h100-a"})} == {
        format_time(begin + hours(300))
    }
    [entry] = state.context.ledger.entries("n0013", ["operation.deferred"])
    assert (entry.body["who"], entry.body["operation"]) == ("acme", ROLLOUT)
    assert defer(ann, 400).status == 200, "operators have no bound"
    assert defer(acme, 1).json["starts_at"] == format_time(begin + hours(1)), "and customers may have it sooner again"


def test_a_swap_is_in_the_same_list(acme: Caller, state: AppState) -> None:
    at = state.records.clock.now().isoformat()
    swap = NodeReplacedEntry("h100-a", "S-out", "n0012", "S-in", at, "d-swap").make_entry("swap-1", at, "n0011")
    state.context.ledger.append(swap)
    seen = acme.get(f"{PATH}/swap-1").json
    assert (seen["operation"], seen["state"]) == ("replace", "succeeded")
    assert seen["reason"] == "n0012 took the place of n0011"
    assert [one["node"] for one in seen["nodes"]] == ["n0011", "n0012"]
    assert "S-in" not in json.dumps(seen), "customers learn no serial numbers"
    assert "UID:swap-1@assay" in str(acme.get(f"{PATH}.ics").body)
