"""What the API answers: nodes in pages, with tags; a customer only its own nodes; and as its OpenAPI document says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from assay.model.fleet import Fleet
from assay.observe.logs.console_log import CONSOLES
from assay.tell.api.conditional_answers import ChangeStream
from assay.tell.api.endpoints import ENDPOINTS
from assay.tell.server.app_state import AppState
from assay.tell.server.visitor_rights import Visitor
from tests.tell.asgi_calls import Caller
from tests.tell.fleet_with_history import HOSTILE

API = "/api/v1"
OPERATION = {"operation": "cordon", "nodes": ["n0016"], "reason": "we look at it", "key": "key-of-reading"}
FOR_STAFF = ("/rollouts", "/tickets")


def names(fleet: Fleet, *pools: str) -> list[str]:
    return sorted(node.name for node in fleet.nodes.values() if not pools or node.pool in pools)


@pytest.fixture(scope="module")
def fleet(state: AppState) -> Fleet:
    return state.context.fleet


def test_every_page_together_has_every_node_once(ann: Caller, fleet: Fleet) -> None:
    after, seen = "", list[str]()
    while after or not seen:
        page = ann.get(f"{API}/nodes?limit=7&after={after}").json
        assert page["total"] == len(fleet.nodes)
        seen += [node["node"] for node in page["nodes"]]
        after = page["next"]
        if not after:
            break
    assert seen == names(fleet)


def test_nodes_are_filtered(ann: Caller, fleet: Fleet) -> None:
    assert [one["node"] for one in ann.get(f"{API}/nodes?held=true").json["nodes"]] == ["n0005"]
    listed = ann.get(f"{API}/nodes?pool=h100-a&state=production").json["nodes"]
    assert {(one["pool"], one["state"], one["in_service"]) for one in listed} == {("h100-a", "production", True)}
    sums = {pool["pool"]: pool["nodes"] for pool in ann.get(f"{API}/pools").json}
    assert sums == {pool: len(names(fleet, pool)) for pool in {node.pool for node in fleet.nodes.values()}}


def test_staff_fetch_what_was_collected_and_nothing_beside_it(ann: Caller, acme: Caller, state: AppState) -> None:
    folder = state.context.reports / "diagnostics"
    folder.mkdir(parents=True)
    (folder / "n0003-e1.zip").write_bytes(b"PK")
    (folder.parent / "secret.zip").write_bytes(b"PK")
    path = f"{API}/diagnostics"
    assert (ann.get(f"{path}/n0003-e1.zip").status, ann.get(f"{path}/n0003-e1.zip").body) == (200, b"PK")
    assert acme.get(f"{path}/n0003-e1.zip").status == 403
    for name in ("n0003-e2.zip", "..%2Fsecret.zip", "../secret.zip", "n0003-e1.zip.part"):
        assert ann.get(f"{path}/{name}").status == 404, name


def test_what_has_not_changed_is_not_sent_again(ann: Caller, acme: Caller) -> None:
    reply = ann.get(f"{API}/nodes")
    tag = reply.headers["etag"]
    again = ann.get(f"{API}/nodes", if_none_match=tag)
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert acme.get(f"{API}/nodes", if_none_match=tag).status == 200, "another visitor sees something else"
    assert ann.get(f"{API}/nodes?limit=3", if_none_match=tag).status == 200


def test_explain_is_what_the_command_prints(ann: Caller) -> None:
    told = ann.get(f"{API}/nodes/n0007/explain").json
    assert told["node"] == "n0007"
    assert "gpu.xid.79" in json.dumps(told["chain"])
    assert len(ann.get(f"{API}/nodes/n0007/explain?last=1").json["chain"]) == 1


def test_a_customer_sees_its_own_nodes_in_plain_words(acme: Caller, fleet: Fleet) -> None:
    listed = acme.get(f"{API}/nodes").json["nodes"]
    assert [one["node"] for one in listed] == names(fleet, "h100-a")
    assert {one["state"] for one in listed} <= {"in service", "out of service"}
    told = acme.get(f"{API}/nodes/n0007/explain").json
    assert "in_service" in told
    assert "chain" not in told


def test_a_customer_learns_nothing_of_others(acme: Caller, ann: Caller, fleet: Fleet) -> None:
    other = next(node for node in fleet.nodes.values() if node.pool != "h100-a")
    nobody = acme.get(f"{API}/nodes/nobody")
    for path in (f"{API}/nodes/{other.name}", f"{API}/nodes/{other.name}/explain"):
        assert ann.get(path).status == 200
        hidden = acme.get(path)
        assert (hidden.status, hidden.body) == (404, nobody.body), "as if it did not exist"
    own = [acme.get(path).body.decode() for path in (f"{API}/nodes", f"{API}/pools", f"{API}/changes?limit=1000")]
    own += [acme.get(f"{API}/nodes/{name}/explain").body.decode() for name in ("n0005", "n0006", "n0007")]
    secrets = [node.name for node in fleet.nodes.values() if node.pool != "h100-a"]
    secrets += [node.serial for node in fleet.nodes.values() if node.serial]
    assert [secret for secret in secrets if any(f'"{secret}"' in text for text in own)] == []
    assert [acme.get(f"{API}{path}").status for path in FOR_STAFF] == [403, 403]


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: one.path)
def test_nobody_is_answered_without_a_token(stranger: Caller, endpoint: Any) -> None:
    assert stranger.get(f"{API}{endpoint.path}".replace("{name}", "n0007")).status in (401, 429)


def test_changes_continue_from_a_position(ann: Caller, state: AppState) -> None:
    head, position, seen = state.context.ledger.head(), 0, list[int]()
    while position < head:
        page = ann.get(f"{API}/changes?after={position}&limit=50").json
        seen += [one["seq"] for one in page["changes"]]
        assert page["position"] > position
        position = page["position"]
    assert seen == list(range(1, head + 1))
    assert ann.get(f"{API}/changes?after={head}").json == {"changes": [], "position": head, "more": False}


@pytest.mark.parametrize("role", ["viewer", "customer"])
def test_the_stream_has_the_same_changes(ann: Caller, acme: Caller, state: AppState, role: Any) -> None:
    caller, visitor = (
        (ann, Visitor("v", role)) if role == "viewer" else (acme, Visitor("c", role, frozenset({"h100-a"})))
    )
    expected = caller.get(f"{API}/changes?after=20&limit=1000").json["changes"]
    assert expected

    async def admit() -> bool:
        return True

    async def read() -> list[dict[str, Any]]:
        found = list[dict[str, Any]]()
        stream = ChangeStream(state).format_changes(visitor, 20, admit)
        async for text in stream:
            if "event: change" in text:
                found.append(json.loads(text.partition("data: ")[2]))
                assert text.startswith(f"id: {found[-1]['seq']}\n")
            if len(found) == len(expected):
                break
        await stream.aclose()  # type: ignore[attr-defined]
        return found

    assert asyncio.run(read()) == expected


def test_hostile_texts_stay_json(ann: Caller) -> None:
    reply = ann.get(f"{API}/nodes/n0005")
    assert HOSTILE in reply.json["details"]["held"]["reason"]
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'self'" in reply.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nodes?limit=1001", 422),
        ("/nodes?limit=0", 422),
        ("/nodes?limit=all", 422),
        ("/nodes?rack=r1", 422),
        (f"/nodes?pool={'x' * 200}", 422),
        (f"/nodes?pool={'x' * 2000}", 414),
        ("/changes?after=-1", 422),
        (f"/changes?after={10**30}", 422),
        ("/nodes/..%2F..%2Fetc%2Fpasswd", 404),
        ("/nodes/../../../etc/passwd", 404),
        ("/nodes/%00", 404),
        ("/nodes/<script>", 404),
    ],
)
def test_what_makes_no_sense_is_refused(ann: Caller, path: str, status: int) -> None:
    reply = ann.get(f"{API}{path}")
    assert (reply.status, reply.json["status"], reply.json["detail"]) == (status, status, reply.json["error"])
    assert "root:" not in reply.body.decode()


def list_parts(document: dict[str, Any], part: Any) -> Iterator[str]:
    """Yield the names of the schemas that a part of the document refers to, and that these refer to."""
    if isinstance(part, dict) and "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        yield name
        yield from list_parts(document, document["components"]["schemas"][name])
    for below in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from list_parts(document, below)


def test_every_field_of_an_answer_says_what_it_means(ann: Caller) -> None:
    document = ann.get(f"{API}/openapi.json").json
    schemas = document["components"]["schemas"]
    answers = [document["paths"][f"{API}{one.path}"]["get"]["responses"]["200"] for one in ENDPOINTS]
    names = {name for one in answers for name in list_parts(document, one)}
    fields = [(name, field, said) for name in names for field, said in schemas[name].get("properties", {}).items()]
    assert len(fields) > 100
    assert [f"{name}.{field}" for name, field, said in fields if not says_something(schemas, said)] == []


def says_something(schemas: dict[str, Any], said: dict[str, Any]) -> bool:
    """Whether a field has a text, or what it refers to has the same."""
    return bool(said.get("description") or schemas.get(said.get("$ref", "").rpartition("/")[2], {}).get("description"))


def test_the_document_is_openapi_and_every_answer_is_as_it_says(state: AppState, ann: Caller) -> None:
    console = state.records.data_dir / CONSOLES / "n0007.log"
    console.parent.mkdir(exist_ok=True)
    console.write_text("[-- Console up -- Tue Dec  1 04:31:45 2026]\r\nn0007 login:")
    document = ann.get(f"{API}/openapi.json").json
    validate(document)
    made = ann.post(f"{API}/operations", OPERATION, content_type="application/json").json["id"]
    for endpoint in ENDPOINTS:
        path = f"{API}{endpoint.path}"
        operation = document["paths"][path]["get"]
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        answer = ann.get(path.replace("{name}", "n0007").replace("{id}", made))
        assert answer.status == 200, path
        Draft202012Validator({**schema, "components": document["components"]}).validate(answer.json)
