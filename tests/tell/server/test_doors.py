"""Words of the unproven hurt nobody: each door of `doors.yaml`, with somebody before it who has proved nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route

from assay.act.boot import matching
from assay.act.boot.attempts import BOOT_KINDS, fold_attempts, is_open, make_started_entry, name_attempt
from assay.act.boot.joins import (
    JOIN_KINDS,
    REPLAY_FAULT,
    JoinRequest,
    find_token_refusal,
    issue_token,
    read_tokens,
    use_token,
)
from assay.act.boot.matching import record_sightings
from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_node_states
from assay.decide.state import decision_and_fault_entries
from assay.declare.loader import load_fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.machines import SeenMachine
from assay.tell.server.requests import reply_refusal
from assay.tell.server.server import ROUTE_BUILDERS
from tests.act.boot.boot_room import lay_out_boot
from tests.tell.asgi_calls import Caller, Reply, let_in, make_state

DOORS: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("doors.yaml").read_text())
OWNER, STARTING, INVENTED = "n0001", "n0003", "n0004.00000000000000000000000000000000"
KEPT = {"join.refused", "boot.stage", "machine.seen", "boot.started"}
"""Entries that tell what was said, and hold for no state, token or fault."""
addresses = (f"198.51.100.{number}" for number in itertools.count(1))


class Door:
    """A server with nodes in production: one starts, and a used token of another one is in strange hands."""

    def __init__(self, root: Path) -> None:
        lay_out_boot(root, 8080)
        fleet = load_fleet(root)
        (home := root / ".assay").mkdir()
        self.state = make_state(fleet, home)
        self.context: ControllerContext = self.state.context
        self.routes = [route for build in ROUTE_BUILDERS for route in build(self.state)]
        self.app = Starlette(routes=self.routes, exception_handlers={HTTPException: reply_refusal})
        ledger, now = self.context.ledger, self.context.clock.now()
        ledger.append(
            *(
                decision_and_fault_entries.make_enrolled_entry(name, node.pool, "production", now)
                for name, node in fleet.nodes.items()
            )
        )
        image, self.starts = next(iter(fleet.images.values())), {name: name_attempt(name) for name in (OWNER, STARTING)}
        ledger.append(*(make_started_entry(name, start, image, now) for name, start in self.starts.items()))
        asked = {name: JoinRequest(name, start, "agent") for name, start in self.starts.items()}
        later = now + timedelta(hours=1)
        self.used, self.good = (issue_token(ledger, asked[name], "tpm", later, now) for name in (OWNER, STARTING))
        use_token(self.context, asked[OWNER], self.used)
        self.honest = asked[STARTING]

    def say(self, door: str, number: int, address: str) -> Reply:
        """Go to a door once, as somebody who has proved nothing."""
        row, (method, path) = DOORS[door], door.split()[:2]
        attempt = self.starts[STARTING] if "attempt" in row else INVENTED
        places = {"attempt": attempt, "document": row.get("document", "user-data"), "stage": "kernel"}
        places |= {"purpose": "agent", "node": STARTING, "monitoring": "exporters", "path:path": "README.md"}
        for place in Route(path, lambda: None).param_convertors:
            path = path.replace(f"{{{place}:path}}", f"{{{place}}}").replace(f"{{{place}}}", places.get(place, "n0003"))
        said = row.get("says", "").replace("{number}", f"{number:02x}")
        shown = row.get("shows", "").replace("{number}", str(number)).replace("used", self.used)
        headers = [("authorization", f"Bearer {shown}")] if shown else []
        body = b"" if method == "GET" else said.encode()
        headers.append(("sec-fetch-site", "same-origin"))
        return Caller(self.app, address).send(method, path + (said if method == "GET" else ""), body, headers)

    def read_new(self, after: int) -> list[LedgerEntry]:
        return self.context.ledger.entries(after=after)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    made = Door(tmp_path_factory.mktemp("doors"))
    yield made
    made.context.ledger.close()


def test_every_route_has_a_row_and_every_row_a_route(door: Door) -> None:
    routes = {
        f"{method} {route.path}"
        for route in door.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    rows = {" ".join(name.split()[:2]) for name in DOORS}
    assert len(routes) >= len(door.routes), "a route without methods or path has no row"
    assert rows == routes


def test_a_row_says_what_limits_a_proven_sender_too() -> None:
    assert [name for name, row in DOORS.items() if (row["proof"] == "nobody") is ("then" in row)] == []


@pytest.mark.parametrize("name", sorted(DOORS))
def test_words_without_a_proof_touch_only_what_the_row_says_and_have_a_limit(door: Door, name: str) -> None:
    row, ledger, stranger = DOORS[name], door.context.ledger, next(addresses)
    head, before = ledger.head(), read_node_states(ledger)

    times = 55 if row["limit"] == "machines" else 25
    replies = [door.say(name, number, stranger) for number in range(times)]

    new = door.read_new(head)
    assert {entry.kind for entry in new} <= set(row.get("may", []))
    assert len(new) <= times
    hold(door, before, new, stranger)
    statuses = [reply.status for reply in replies]
    if row["limit"] in ("refusals", "machines"):
        assert (statuses[0] != 429, statuses[-1]) == (True, 429), statuses
        assert row["limit"] == "machines" or set(statuses) <= {401, 429}, statuses
        assert door.say(name, 99, next(addresses)).status != 429, "others need not wait"
    elif row["limit"] == "fetches":
        assert b"boots in a loop" in replies[-1].body
        assert b"boots in a loop" not in door.say(name, 0, next(addresses)).body, "the machine itself need not wait"
    else:
        assert {"once": len(new) <= 1, "nothing": not new}[row["limit"]]


def hold(door: Door, before: Any, new: list[LedgerEntry], stranger: str) -> None:
    """Hold that no node has moved, the start goes on, and a fault is the shown token's owner's, with the sender."""
    after = read_node_states(door.context.ledger)
    for node in before:
        assert after[node].state == before[node].state, node
        if node != OWNER:
            assert after[node].faults == before[node].faults, f"{node} has proved nothing, and is framed"
    for entry in (entry for entry in new if entry.kind not in KEPT):
        assert entry.node == OWNER, entry
        assert entry.kind != "fault" or (entry.body["class"] == REPLAY_FAULT and stranger in entry.body["detail"])
    assert find_token_refusal(door.context, door.honest, door.good) is None, "its token is as good as before"
    attempt = fold_attempts(door.context.ledger.entries(STARTING, BOOT_KINDS))[door.starts[STARTING]]
    provisioning = door.context.fleet.provisioning_of(STARTING)
    assert provisioning
    assert is_open(attempt, provisioning, door.context.clock.now())
    tokens = read_tokens(door.context.ledger.entries(STARTING, kinds=JOIN_KINDS))
    assert [token.ended_by for token in tokens.values()] == [""]


def test_what_dhcp_servers_repeat_has_a_limit_by_day(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MOST_HEARSAY_A_DAY", 30)
    ledger, now = door.context.ledger, door.context.clock.now()
    head, before = ledger.head(), read_node_states(ledger)
    for number in range(40):
        seen = SeenMachine.parse({"bmc_mac": "02:dd:00:00:00:01", "address": f"10.0.0.{number}"})
        record_sightings(ledger, [seen], "lease", now)
    assert len(door.read_new(head)) == 30
    hold(door, before, [], "")
    own = SeenMachine.parse({"bmc_mac": "02:dd:00:00:00:02"})
    assert record_sightings(ledger, [own], "scan", now) == [own], "a scan of our own has no such limit"
    assert record_sightings(ledger, [own, seen], "lease", now + timedelta(days=1)) == [seen], "the next day begins anew"


def test_a_trusted_proxy_says_who_the_sender_is_and_nobody_else(door: Door, tmp_path: Path) -> None:
    state = make_state(let_in(door.context.fleet, {"proxy": {"addresses": ["10.7.0.5"]}}), tmp_path)

    def find(address: str, said: str) -> str:
        scope = {"type": "http", "client": (address, 1), "headers": [(b"x-forwarded-for", said.encode())]}
        return state.find_sender(Request(scope))

    assert find("10.7.0.5", "203.0.113.9") == "203.0.113.9"
    assert find("10.7.0.5", "192.0.2.1, 203.0.113.9") == "203.0.113.9", "the first is what the sender says"
    assert find("10.7.0.5", "2001:db8::1") == "2001:db8::/64"
    assert find("10.7.0.5", "nonsense") == "10.7.0.5"
    assert find("198.51.100.200", "203.0.113.9") == "198.51.100.200"
