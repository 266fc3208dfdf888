"""Every page on a fleet with history: what it shows, whom it shows it to, and that what devices say does nothing."""

from __future__ import annotations

import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from assay.model.fleet import Fleet
from assay.tell.pages import page_routes
from assay.tell.server.app_state import AppState
from assay.tell.server.requests import reply_refusal
from tests.tell.asgi_calls import Caller, let_in, make_state
from tests.tell.fleet_with_history import HOSTILE, ROLLOUT, make_fleet_with_history, make_ticket

TICKET = f"/tickets/{make_ticket().id}"
PAGES = {
    "/": ["n0007", "wait", "GPUs in service, ", "gpu.nvlink.down", "RCA with the vendor &lt;script&gt;"],
    "/?pool=h100-a&standing=people&text=n00": ["2 of 20 nodes shown", "n0001"],
    "/?site=nowhere": ["No node matches"],
    "/nodes/n0003": ["production-reboot", "default.yaml", "Compared with the repository", "unknown"],
    "/nodes/n0004": ["temperature", "beyond its limit", "peers"],
    "/nodes/n0006": ["Next: running jobs.", "job 4711", "It leaves service when the running jobs have ended"],
    "/nodes/n0007": ["The GPU has fallen off the bus: gpu4", "Next: ", "Back:"],
    "/fabric": ["Nothing is known of its cables"],
    "/fabric/leaf-su01-r3": ["not known"],
    "/idle": ["No schedule verifies idle nodes"],
    "/trends": ["What gets worse among its peers", "has not run"],
    "/machines": ["No machine was seen yet", "Expected and not seen yet: 2", "A520112X4400021"],
    "/racks/r02?site=lab1": ["U24–31", "n0007", "No ticket is open"],
    "/racks/r03": ["Cable of n0009 flaps"],
    "/pools/h100-a": ["of 16 nodes in service", "hgx-h100"],
    "/rollouts": ["aaaaaaaa → bbbbbbbb", "0 of 2 nodes"],
    f"/rollouts/{ROLLOUT[:6]}": ["firmware of the BMC", "n0013"],
    "/tickets": ["1 open ticket", "rack r03 U4 n0009 port mlx5_3"],
    TICKET: ["← here", "Reseat both ends.", "leaf-su01-r3"],
    "/customer": [
        "nodes in service",
        "connections between GPUs of the node are down (GPU 2)",
        "available since",
        "over 18 nodes",
        "2 nodes have never served",
    ],
    "/customer?node=n0003": ["it was out of service from"],
}
ABSENT = [
    "/nodes/n9999",
    "/racks/r99",
    "/pools/nowhere",
    "/rollouts/ffff",
    "/tickets/ffff",
    "/customer?node=n9999",
    "/static/0123/style.css",
    f"/source/{'0' * 40}/specs/lifecycle/default.yaml",
    f"/source/{'0' * 40}/../../etc/passwd",
]
ACCESS = {"visitors": {"acme": {"role": "customer", "pools": ["byo-b"], "token": {"sha256": "@"}}}}
ACME = {"authorization": "Bearer token-of-acme"}


@pytest.fixture(scope="module")
def fleet_home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Fleet, Path]:
    root = tmp_path_factory.mktemp("fleet")
    return make_fleet_with_history(root), root / ".assay"


def serve_pages(state: AppState) -> Caller:
    app = Starlette(routes=page_routes.routes(state), exception_handlers={HTTPException: reply_refusal})
    return Caller(app) if state.context.policy.access else Caller.reading(app)


@pytest.fixture(scope="module")
def reader(fleet_home: tuple[Fleet, Path]) -> Caller:
    """Return a reader on this machine of a fleet that declares nobody."""
    return serve_pages(make_state(*fleet_home))


@pytest.fixture(scope="module")
def customer(fleet_home: tuple[Fleet, Path]) -> Caller:
    """Return a caller to which the customer's token is added by each test."""
    access: dict[str, Any] = ACCESS | {}
    access["visitors"]["acme"]["token"]["sha256"] = hashlib.sha256(b"token-of-acme").hexdigest()
    fleet, home = fleet_home
    return serve_pages(make_state(let_in(fleet, access), home))


@pytest.mark.parametrize("path", PAGES)
def test_a_page_shows_what_the_records_say_and_nothing_of_it_runs(reader: Caller, path: str) -> None:
    reply = reader.get(path)
    page = reply.body.decode()
    assert reply.status == 200
    assert [text for text in PAGES[path] if text not in page] == []
    assert "default-src 'self'" in reply.headers["content-security-policy"]
    assert HOSTILE not in page
    assert not re.search(r"<img src=x|document\.title='owned'</script>|\sstyle=|\son\w+=\"|>49<", page)


class Visible(HTMLParser):
    """What a page shows before anybody opens a fold, one text for each element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "br", "input"):
            self._open.append("fold" if tag == "details" and "open" not in dict(attrs) else tag)

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        is_hidden = {"head", "nav", "svg", "fold"} & {*self._open} and "summary" not in self._open
        if data.strip() and not is_hidden:
            self.texts.append(" ".join(data.split()))


def test_the_page_of_a_dead_gpu_begins_with_it_and_says_all_once_in_400_words(reader: Caller) -> None:
    texts = Visible(reader.get("/nodes/n0007").body.decode()).texts
    assert sum(len(text.split()) for text in texts) <= 400
    happened = next(text for text in texts if text.startswith("The GPU has fallen off the bus: gpu4"))
    assert texts.index(happened) < texts.index("Back:") < texts.index("Decisions")
    sentences = [sentence for text in texts for sentence in re.split(r"(?<=[.;]) ", text) if len(sentence.split()) > 4]
    assert sorted(sentences) == sorted(set(sentences))
    assert len(sentences) > 4


@pytest.mark.parametrize("path", ABSENT)
def test_what_is_not_there_is_refused(reader: Caller, path: str) -> None:
    assert reader.get(path).status == 404


def test_every_link_of_a_page_leads_to_a_page(reader: Caller) -> None:
    found = {url for path in PAGES for url in re.findall(r'href="(/[^"#]*)', reader.get(path).body.decode())}
    local = {url.replace("&amp;", "&") for url in found if not url.startswith("/source/")}
    assert {url for url in local if reader.get(url).status != 200} == set()
    assert len(local) > 40


def test_the_same_records_give_the_same_page_once(reader: Caller) -> None:
    tag = reader.get("/?text=n0004").headers["etag"]
    again = reader.get("/?text=n0004", if_none_match=tag)
    assert again.status == 304 or again.headers["etag"] != tag  # a minute may go by


def test_a_long_query_is_refused(reader: Caller) -> None:
    assert reader.get(f"/?text={'x' * 600}").status == 414


def test_a_customer_reads_of_its_own_nodes_alone(customer: Caller, fleet_home: tuple[Fleet, Path]) -> None:
    page = customer.get("/customer", **ACME).body.decode()
    fleet, _ = fleet_home
    names = {name for name in fleet.nodes if name in page}
    assert names == {node.name for node in fleet.nodes_in_pool("byo-b")}
    words = [node.serial for node in fleet.nodes.values()] + ["production", "ann", "gpu.xid", "h100-a", "ledger"]
    assert [word for word in words if word in page] == []


def test_a_customer_with_many_nodes_gets_a_part_of_them_and_finds_the_others(
    customer: Caller, fleet_home: tuple[Fleet, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.tell.pages.fleet_pages.SHOWN", 3)
    names = sorted(node.name for node in fleet_home[0].nodes_in_pool("byo-b"))

    def list_shown(query: str) -> list[str]:
        body = customer.get(f"/customer?{query}", **ACME).body.decode()
        return re.findall(r">(n\d{4})</a>", body.partition("All nodes")[2])

    assert (len(names), list_shown("page=1"), list_shown("page=2")) == (4, names[:3], names[3:])
    assert list_shown(f"text={names[3]}") == names[3:]
    assert list_shown("page=99") == names[3:]
    assert "1 to 3 of 4" in customer.get("/customer?page=1", **ACME).body.decode()


def test_a_customer_is_led_to_its_page_and_gets_no_other(customer: Caller) -> None:
    first = customer.get("/", **ACME)
    assert (first.status, first.headers["location"]) == (303, "/customer")
    others = [path for path in PAGES if not path.startswith(("/customer", "/?")) and path != "/"]
    assert {customer.get(path, **ACME).status for path in others} == {403}


def test_a_node_of_another_customer_is_like_one_that_does_not_exist(customer: Caller) -> None:
    foreign, absent = (customer.get(f"/customer?node={name}", **ACME) for name in ("n0003", "n9999"))
    assert (foreign.status, foreign.body) == (absent.status, absent.body) == (404, absent.body)


def test_what_was_rendered_for_one_visitor_is_not_given_to_another(customer: Caller) -> None:
    own = customer.get("/customer", **ACME)
    assert customer.get("/customer").status == 401
    assert own.status == 200
