"""A customer's webhook hears of its own nodes, signed, once for each change, and never a flood."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from assay.tell.messages import webhook_notices
from tests.support.ticket_sinks import Request, Service, Trouble
from tests.tell.messages.hall import SERVING, Hall

KEY = "canary-91ab"


class Receiver(Service):
    """A customer's own program: it keeps each message."""

    def answer(self, request: Request) -> tuple[int, Any]:
        return 204, None

    @property
    def told(self) -> list[list[tuple[str, str]]]:
        """Return what each message told: the nodes with their events."""
        return [[(one["node"], one["event"]) for one in request.body["nodes"]] for request in self.requests]


@pytest.fixture
def receiver(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setenv("ACME_KEY", KEY)
    service = Receiver()
    with service.up():
        point(hall, service.url)
        yield service


def point(hall: Hall, url: str, **more: Any) -> None:
    hook = {"pools": ["h100-a"], "url": url, "credentials": {"env": "ACME_KEY"}, "every_minutes": 10, **more}
    hall.rules = {"webhooks": {"acme": hook}}


def test_a_customer_hears_that_its_node_left_and_is_back_in_plain_words(hall: Hall, receiver: Receiver):
    hall.leaves("n0003")
    hall.tell()
    hall.returns("n0003")
    hall.tell()
    assert receiver.told == [[("n0003", "left")], [("n0003", "back")]]
    (left,) = receiver.requests[0].body["nodes"]
    assert "a GPU no longer answers" in left["happened"]
    assert set(left) == {"node", "pool", "event", "since", "happened", "means", "doing", "back"}
    assert "gpu.xid" not in receiver.requests[0].raw.decode()
    assert [one.kind for one in hall.notes()] == ["notices.started", "notices.sent"] * 2


def test_each_message_is_signed_with_the_customers_key(hall: Hall, receiver: Receiver):
    hall.leaves("n0003")
    hall.tell()
    (request,) = receiver.requests
    signed = request.headers["X-Assay-Timestamp"].encode() + b"." + request.raw
    code = hmac.new(KEY.encode(), signed, hashlib.sha256).hexdigest()
    assert request.headers["X-Assay-Signature-256"] == f"sha256={code}"
    assert KEY not in json.dumps([one.body for one in hall.notes()])


def test_nodes_of_others_are_not_for_this_customer(hall: Hall, receiver: Receiver):
    point(hall, receiver.url, pools=["byo-b"])
    hall.leaves("n0003", "n0004")
    hall.tell()
    assert receiver.requests == []


def test_many_nodes_are_one_message_and_the_next_waits(hall: Hall, receiver: Receiver):
    out = SERVING[:3]
    hall.leaves(*out[:2])
    hall.tell()
    hall.leaves(out[2])
    hall.tell()
    assert receiver.told == [[(name, "left") for name in out[:2]]]
    hall.paper.later(minutes=10)
    hall.tell()
    assert receiver.told[1:] == [[(out[2], "left")]]
    hall.paper.later(hours=1)
    hall.crash()
    hall.tell()
    assert [event for message in receiver.told[2:] for _, event in message if event != "expected"] == []


def test_a_new_time_of_return_is_told(hall: Hall, receiver: Receiver):
    hall.leaves("n0003")
    hall.tell()
    until = hall.now().replace(year=hall.now().year + 1).isoformat()
    hall.paper.say("hold", "n0003", until=until)
    hall.paper.later(minutes=10)
    hall.tell()
    assert receiver.told[1:] == [[("n0003", "expected")]]
    assert receiver.requests[1].body["nodes"][0]["back"].startswith("It is not back before")


def test_a_message_that_was_not_taken_is_sent_again_as_it_was(hall: Hall, receiver: Receiver):
    receiver.troubles.append(Trouble("POST", status=500))
    hall.leaves("n0003")
    hall.tell()
    assert "the webhook of acme got no notices: answers 500" in hall.said[-1]
    hall.leaves("n0004")
    hall.crash()
    hall.tell()
    first, again = receiver.requests
    assert (first.raw, first.headers["Idempotency-Key"]) == (again.raw, again.headers["Idempotency-Key"])
    assert len(hall.notes("notices.sent")) == 1


def test_a_webhook_that_fails_waits_longer_each_time(hall: Hall, receiver: Receiver):
    receiver.troubles.append(Trouble("POST", status=500, times=9))
    hall.leaves("n0003")
    for _ in range(8):  # a minute apart
        hall.tell()
    assert 2 < len(receiver.requests) < 6


def test_an_answer_that_was_lost_makes_a_second_request_with_the_same_key(hall: Hall, receiver: Receiver):
    receiver.troubles.append(Trouble("POST", cut=True, after=True))
    hall.leaves("n0003")
    hall.tell()
    hall.tell()
    assert len({one.headers["Idempotency-Key"] for one in receiver.requests}) == 1
    assert len(receiver.requests) == 2


def test_a_webhook_at_another_address_hears_of_nodes_that_are_out(hall: Hall, receiver: Receiver):
    hall.leaves("n0003")
    hall.tell()
    point(hall, f"{receiver.url}/new")
    hall.tell()
    assert receiver.told == [[("n0003", "left")]] * 2


def test_what_was_not_taken_is_not_sent_to_a_customer_who_lost_the_pool(hall: Hall, receiver: Receiver):
    receiver.troubles.append(Trouble("POST", status=500))
    hall.leaves("n0003")
    hall.tell()
    point(hall, receiver.url, pools=["byo-b"])
    hall.paper.later(hours=2)
    hall.tell()
    assert len(receiver.requests) == 1


def test_a_message_has_no_more_nodes_than_it_may_and_the_next_has_the_rest(
    hall: Hall, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(webhook_notices, "MAX_NODES", 1)
    hall.leaves("n0003", "n0004")
    hall.tell()
    hall.paper.later(minutes=10)
    hall.tell()
    assert receiver.told == [[("n0003", "left")], [("n0004", "left")]]


def test_nobody_hears_of_a_simulated_node(hall: Hall, receiver: Receiver):
    hall.fleet = replace(hall.fleet, is_lab=True)
    hall.leaves("n0003")
    hall.tell()
    assert receiver.requests == []


def test_a_key_that_cannot_be_read_is_said_without_it(hall: Hall, receiver: Receiver, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ACME_KEY")
    hall.leaves("n0003")
    hall.tell()
    assert "ACME_KEY" in hall.said[-1]
    assert receiver.requests == []
