"""Whatever is sent: a node speaks for itself only, and what cannot be taken is refused in plain words."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.tell.server.batch_writer import BatchRefused, parse_batch
from tests.support.site_of_agents import TOKENS, batch, xid_item


def sent(**changed) -> bytes:
    return json.dumps(batch(**changed)).encode()


def test_a_right_batch_is_taken_up_to_its_last_number_and_again_for_nothing(shared):
    life = "22222222-2222-2222-2222-222222222222"
    body = sent(life=life, items=[xid_item(1), xid_item(2, number=48)])
    assert shared.post("n0003", body) == (200, {"acked": 2, **shared.post("n0003", body)[1]})
    assert (
        shared.post("n0003", sent(life=life, items=[xid_item(2, number=48), xid_item(5, number=62)]))[1]["acked"] == 5
    )
    assert [one.body["count"] for one in shared.faults("gpu.xid.48")] == [1]
    assert len(shared.faults("gpu.xid.62")) == 1


def test_a_new_life_counts_anew_but_known_lines_add_nothing(shared):
    for life in ("33333333-3333-3333-3333-333333333333", "44444444-4444-4444-4444-444444444444"):
        body = sent(node="n0004", life=life, items=[xid_item(1, line=7, number=94)])
        assert shared.post("n0004", body)[1]["acked"] == 1
    assert len(shared.faults("gpu.xid.94")) == 1


def test_the_agent_is_told_the_words_that_the_catalogue_looks_for_until_it_knows_them(shared):
    words = shared.post("n0003", sent())[1]["words"]
    assert words
    known = batch()
    known["agent"]["words"] = words
    assert "words" not in shared.post("n0003", json.dumps(known).encode())[1]


def test_nobody_speaks_without_the_nodes_token(shared):
    for name, token in (("n0003", ""), ("n0003", TOKENS["n0004"]), ("n0001", "x"), ("nobody", "x"), ("n0001", "")):
        status, answer = shared.post(name, sent(node=name), token)
        assert (status, answer["error"]) == (401, "this token is not this node's")


def test_a_node_speaks_for_itself_only(shared):
    status, answer = shared.post("n0004", sent(node="n0003", items=[xid_item(1)]))
    assert (status, answer["error"]) == (422, "a node speaks for itself only")


def test_a_token_brings_neither_readings_nor_lines_of_another_machine(shared):
    probe = {"host": {"serial": {"value": "A520112X4400002"}, "boot_id": {"value": "b2"}}}
    item = {"seq": 1, "kind": "probe", "at": time.time(), "body": probe}
    for name, life in (("n0010", "5"), ("n0012", "6")):
        brought = {"items": [item]} if name == "n0010" else {"items": [xid_item(1)], "machine": "A520112X4400002"}
        body = sent(node=name, life=f"{life * 8}-2222-2222-2222-222222222222", **brought)
        assert shared.post(name, body)[1]["acked"] == 1
        (fault,) = shared.faults(node=name)
        assert fault.body["class"] == "identity.changed"
        assert "A520112X4400002" in fault.body["detail"]
        assert f"A520112X44000{name[-2:]}" in fault.body["detail"]
    assert shared.faults(node="n0002") == []


WRONG = {
    "no document": b"{",
    "nothing": b"",
    "a list": b"[]",
    "deep": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "no text": b"\xff\xfe",
    "no number": sent().replace(b'"after": 0', b'"after": NaN'),
    "another schema": sent(schema="assay.agent/9"),
    "unknown part": sent(more=1),
    "huge number": sent(after=2**80),
    "text for a number": sent(after="0"),
    "no life": sent(life="x"),
    "out of order": sent(items=[xid_item(2), xid_item(1)]),
    "twice": sent(items=[xid_item(2), xid_item(2)]),
    "unknown kind": sent(items=[xid_item(1, kind="shell")]),
    "a line of no boot": sent(items=[xid_item(1, boot="../../etc")]),
    "a long line": sent(items=[xid_item(1, text="x" * 20000)]),
    "half a letter": sent(items=[xid_item(1, text="\ud800")]),
    "readings that nest": sent(
        items=[{"seq": 1, "kind": "probe", "at": 1.0, "body": json.loads('{"a":' * 60 + "1" + "}" * 60)}]
    ),
    "readings that are no text": sent(items=[{"seq": 1, "kind": "probe", "at": 1.0, "body": {"a": "\ud800"}}]),
    "a time without end": sent(items=[xid_item(1)]).replace(b'"t_s": 11.0', b'"t_s": 1e400'),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_batch_is_refused_in_plain_words(shared, name):
    status, answer = shared.post("n0003", WRONG[name])
    assert status == 422
    assert 0 < len(answer["error"]) <= 300
    assert "Traceback" not in answer["error"]
    assert shared.post("n0003", sent())[0] == 200


def test_a_body_without_end_is_cut_off(shared):
    context = ssl.create_default_context(cafile=str(shared.home / "ca.pem"))
    line = http.client.HTTPSConnection("127.0.0.1", shared.port, context=context)
    line.putrequest("POST", "/agent/v1/nodes/n0003/batches")
    line.putheader("Authorization", f"Bearer {TOKENS['n0003']}")
    line.putheader("Content-Length", str(8 * 1024 * 1024 + 1))
    line.endheaders()
    assert line.getresponse().status == 413
    line.close()


def test_other_paths_and_methods_are_no_secret(shared):
    context = ssl.create_default_context(cafile=str(shared.home / "ca.pem"))
    for path, status in (("/nothing", 404), ("/agent/v1/nodes/n0003/batches", 405)):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(shared.url + path, context=context)
        told = json.loads(caught.value.read())
        assert (caught.value.code, told["status"], told["error"]) == (status, status, told["detail"])
    with urllib.request.urlopen(f"{shared.url}/healthz", context=context) as answer:
        assert json.load(answer) == {"ok": True}


def test_whoever_guesses_must_wait_and_the_node_beside_need_not(shared):
    with ThreadPoolExecutor(8) as pool:
        statuses = set(pool.map(lambda _: shared.post("n0003", b"", "guess")[0], range(60)))
    assert statuses == {401, 429}
    assert shared.post("n0003", sent())[0] == 200


def test_what_an_agent_lost_is_told_once(shared):
    life, state = "55555555-5555-5555-5555-555555555555", batch()["agent"]
    for dropped in ({}, {"warnings": 3}, {"warnings": 3}, {"warnings": 5, "known": 1}):
        shared.post("n0003", sent(life=life, agent={**state, "dropped": dropped, "missed": 0}))
    from assay.ledger.store import Ledger

    ledger = Ledger.open(shared.fleet / ".assay/ledger.sqlite")
    told = [one.body["reason"] for one in ledger.entries("n0003", ["observe.failed"])]
    assert told == [
        "lost before they could be delivered: 3 warnings",
        "lost before they could be delivered: 2 warnings, 1 known",
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(st.binary(max_size=300) | JSON.map(lambda plain: json.dumps(plain).encode()))
def test_no_bytes_break_the_reader(body):
    with pytest.raises(BatchRefused):
        parse_batch(body, "n0003")


@given(st.sampled_from(sorted(batch())), JSON, st.sampled_from([None, "seq", "kind", "at", "body"]))
def test_no_part_of_a_batch_can_be_anything(name, anything, within):
    changed = batch(items=[xid_item(1)])
    if within:
        changed["items"][0][within] = anything
    else:
        changed[name] = anything
    with contextlib.suppress(BatchRefused):
        assert parse_batch(json.dumps(changed).encode(), "n0003").node == "n0003"
