"""Every page leads on: a node to all that is about it, one field to each thing, a login to the page asked for."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request

from assay.decide.faults.incidents import list_incidents
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.tell.pages import page_routes
from assay.tell.pages.page_frame import reply_refusal_to_reader
from tests.tell.asgi_calls import Caller, make_state
from tests.tell.fleet_with_history import ROLLOUT, make_fleet_with_history, make_ticket

TICKET = make_ticket().id
BROWSER = {"accept": "text/html,application/xhtml+xml"}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return make_fleet_with_history(tmp_path_factory.mktemp("fleet"))


@pytest.fixture(scope="module")
def site(fleet: Fleet) -> Caller:
    state = make_state(fleet, fleet.root / ".assay")
    handlers = {HTTPException: reply_refusal_to_reader}
    return Caller.reading(Starlette(routes=page_routes.routes(state), exception_handlers=handlers))


def read(site: Caller, path: str) -> str:
    reply = site.get(path, **BROWSER)
    assert reply.status == 200, reply.body
    return reply.body.decode()


def find_target(site: Caller, text: str) -> str:
    """Return where the field leads that is filled with this text; "" for a page with several things or none."""
    return site.get(f"/search?text={text}", **BROWSER).headers.get("location", "")


def of(fleet: Fleet, name: str) -> Node:
    return fleet.nodes[name]


def test_the_field_leads_to_the_one_thing_that_is_meant(site: Caller, fleet: Fleet) -> None:
    node = of(fleet, "n0009")
    assert find_target(site, "n0009") == "/nodes/n0009"
    assert find_target(site, node.serial.lower()) == "/nodes/n0009"
    guid = node.hca_guids[3]
    assert find_target(site, guid) == find_target(site, guid.upper().replace("0X", "")) == "/nodes/n0009"
    assert find_target(site, TICKET[:12]) == f"/tickets/{TICKET}"
    assert find_target(site, ROLLOUT) == f"/rollouts/{ROLLOUT}"
    assert find_target(site, "leaf-su01-r3") == "/fabric/leaf-su01-r3"
    assert find_target(site, "r02") == "/racks/r02?site=lab1"


def test_the_field_finds_an_incident_on_the_page_of_its_node(site: Caller, fleet: Fleet) -> None:
    state = next(each for each in make_state(fleet, fleet.root / ".assay").records.read_node_states() if each.faults)
    incident = list_incidents(fleet.fault_relations, state)[-1]
    assert find_target(site, incident.id) == f"/nodes/{state.node}#incident-{incident.id}"
    if incident.is_open:
        assert f'id="incident-{incident.id}"' in read(site, f"/nodes/{state.node}")


def test_several_things_are_listed_and_none_is_said(site: Caller) -> None:
    several = read(site, "/search?text=n000")
    assert several.count("<tr><td>node</td>") == 9
    assert "Nothing is called “zz9”" in read(site, "/search?text=zz9")
    assert "Type at least 2 letters" in read(site, "/search?text=n")
    assert "<script>alert" not in read(site, "/search?text=%3Cscript%3Ealert(1)")


def test_a_node_leads_to_all_that_is_about_it_and_back(site: Caller, fleet: Fleet) -> None:
    page = read(site, "/nodes/n0009")
    node = of(fleet, "n0009")
    leads = {f"/tickets/{TICKET}", f"/racks/{node.rack}?site={node.site}", f"/pools/{node.pool}", "/", "/fabric"}
    assert leads - set(re.findall(r'href="([^"]+)"', page)) == set()
    assert f'href="/rollouts/{ROLLOUT}"' in read(site, "/nodes/n0013")
    switches = set(re.findall(r'href="(/fabric/[^"]+)"', page))
    assert len(switches) == len(node.hca_guids)
    assert all('href="/nodes/n0009"' in read(site, switch) for switch in switches)
    for target in re.findall(r'href="#([^"]+)"', read(site, "/nodes/n0007")):
        assert f'id="{target}"' in read(site, "/nodes/n0007")


def test_every_page_leads_to_every_kind_of_page(site: Caller) -> None:
    for path in ("/", "/nodes/n0007", "/tickets", f"/tickets/{TICKET}", "/trends", "/search?text=zz9"):
        navigation = read(site, path).partition("<header")[2].partition("</header>")[0]
        leads = re.findall(r'href="([^"]+)"', navigation)
        assert leads == ["/", "/tickets", "/fabric", "/trends", "/idle", "/machines", "/rollouts", "/customer"]
        assert 'action="/search"' in navigation


@pytest.mark.parametrize(
    "path", ["/nosuch", "/nodes/n9999", "/tickets/nosuch", "/customer?node=n9999", "/fabric/nosuch"]
)
def test_a_page_that_is_not_there_is_a_page_for_people_and_json_for_programs(site: Caller, path: str) -> None:
    page, answer = site.get(path, **BROWSER), site.get(path)
    assert (page.status, answer.status) == (404, 404)
    assert 'name="viewport"' in page.body.decode()
    assert 'action="/search"' in page.body.decode()
    assert answer.json["status"] == 404


@pytest.mark.parametrize(("accept", "kind"), [("text/html", "text/html"), ("*/*", "application/problem+json")])
def test_an_error_of_our_own_is_a_page_for_people_and_says_nothing_of_its_cause(accept: str, kind: str) -> None:
    request = Request({"type": "http", "method": "GET", "path": "/", "headers": [(b"accept", accept.encode())]})
    reply = asyncio.run(reply_refusal_to_reader(request, ValueError("the token is 5512")))
    assert (reply.status_code, reply.media_type) == (500, kind)
    assert b"see its log" in bytes(reply.body)
    assert b"5512" not in bytes(reply.body)


def test_commands_name_a_page_where_the_policy_says_where_pages_are(fleet: Fleet) -> None:
    policy = fleet.policy.model_copy(update={"pages": "https://assay.example.org"})
    told = replace(fleet, policies={policy.name: policy})
    assert fleet.find_page("nodes", "n0001") == ""
    assert told.find_page("nodes", "a/b") == "https://assay.example.org/nodes/a%2Fb"
    assert replace(told, is_lab=True).find_page("nodes", "n0001") == "", "the lab's machines are not on that server"
