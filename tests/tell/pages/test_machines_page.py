"""The page of machines that were seen, and the API's answer: the same list, with what to do."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from assay.model.entries.boot import BmcTakeoverEntry
from assay.model.fleet import Fleet
from assay.model.ledger_entry import derive_id
from assay.tell.api import conditional_answers
from assay.tell.pages import page_routes
from tests.support.browser import needs_browser, open_browser
from tests.support.site_of_agents import Site
from tests.tell.asgi_calls import Caller, let_in, make_state
from tests.tell.fleet_with_history import make_fleet_with_history
from tests.tell.pages.seen_machines import DELIVERED, HEARD, record_machines

STRANGERS = 500
WIDTHS = (390, 820, 1100)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    fleet = make_fleet_with_history(tmp_path_factory.mktemp("fleet"))
    record_machines(fleet.root / ".assay", STRANGERS)
    return fleet


@pytest.fixture(scope="module")
def reader(fleet: Fleet) -> Caller:
    state = make_state(let_in(fleet, None), fleet.root / ".assay")
    return Caller.reading(Starlette(routes=[*page_routes.routes(state), *conditional_answers.routes(state)]))


def read_rows(page: str) -> dict[str, str]:
    """Return the text of each heading's rows."""
    parts = re.split(r'<h2 id="(\w+)">', page)[1:]
    return {
        name: html.unescape(re.sub(r"<[^>]+>", " ", text)) for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def test_the_page_says_what_each_machine_is_and_what_to_do(reader: Caller) -> None:
    rows = read_rows(reader.get("/machines").body.decode())
    assert list(rows) == ["contradiction", "misplaced", "expected", "stranger"]
    assert "Another machine says A520112X4400005 of itself too." in rows["contradiction"]
    assert "It says that it stands at r02 U24, and it belongs at r01 U" in rows["misplaced"]
    assert "assay discover --scan 10.20.9.4 --login" in rows["misplaced"]
    assert f"serial {DELIVERED}" in rows["expected"]
    assert "assay discover --propose" in rows["expected"]
    assert "nor is a report.  assay discover --scan 10.20.9.22 --login" in re.sub(r"\s\s+", "  ", rows["expected"])
    assert "and 400 more" in rows["stranger"]
    assert "1 machine is a node of the inventory" in rows["stranger"]


def test_the_search_finds_one_of_many(reader: Caller) -> None:
    page = reader.get("/machines?text=s00444").body.decode()
    assert (list(read_rows(page)), "S00444" in page, "S00443" in page) == (["stranger"], True, False)
    assert "No machine matches" in reader.get("/machines?text=%3Cscript%3Ex").body.decode()


def test_the_api_gives_the_same_list(reader: Caller) -> None:
    answer = reader.get("/api/v1/machines").json
    verdicts = [one["verdict"] for one in answer["machines"]]
    assert verdicts[:5] == ["contradiction", "contradiction", "misplaced", "expected", "expected"]
    assert (verdicts.count("stranger"), verdicts[-1]) == (STRANGERS, "node")
    (heard,) = [one for one in answer["machines"] if one["seen"]["bmc_mac"] == HEARD]
    assert (heard["node"], heard["source"], heard["recorded_at"][:2]) == ("n0022", "scan", "20")
    assert answer["not_seen"] == []


def test_a_factory_login_is_told_until_it_ended(fleet: Fleet, tmp_path: Path) -> None:
    (delivery,) = fleet.deliveries.values()
    machine = delivery.machines[0].model_copy(update={"serial_number": fleet.nodes["n0004"].serial, "name": "n0004"})
    ours = delivery.model_copy(update={"machines": [machine]})
    state = make_state(replace(let_in(fleet, None), deliveries={ours.name: ours}), tmp_path)
    caller = Caller.reading(Starlette(routes=[*page_routes.routes(state), *conditional_answers.routes(state)]))
    assert '<a href="/nodes/n0004">n0004</a>' in caller.get("/machines").body.decode()
    entry = BmcTakeoverEntry("done", machine.serial_number, "fleet", "root")
    state.context.ledger.append(entry.make_entry(derive_id("done"), state.context.now, "n0004"))
    assert "Factory logins" not in caller.get("/machines").body.decode()
    assert caller.get("/api/v1/machines").json["factory_logins"] == []


def test_no_customer_sees_machines(fleet: Fleet) -> None:
    from tests.tell.api.conftest import ACCESS, TOKENS

    state = make_state(let_in(fleet, ACCESS), fleet.root / ".assay")
    app = Caller.reading(Starlette(routes=[*page_routes.routes(state), *conditional_answers.routes(state)]))
    for path in ("/machines", "/api/v1/machines"):
        assert app.showing(TOKENS["acme"]).get(path).status == 403
        assert app.showing(TOKENS["vic"]).get(path).status == 200


@pytest.mark.slow(minutes=1)
@needs_browser
@pytest.mark.parametrize("strangers", [None, 0, STRANGERS])
def test_the_page_fits_every_screen_and_axe_finds_nothing(tmp_path: Path, strangers: int | None) -> None:
    from axe_playwright_python.sync_playwright import Axe

    make_fleet_with_history(tmp_path / "fleet")
    if strangers is not None:
        record_machines(tmp_path / "fleet/.assay", strangers)
    site = Site.of_fleet(tmp_path)
    site.serve()
    try:
        with open_browser() as browser:
            for theme in ("light", "dark"):
                look = {"color_scheme": theme, "extra_http_headers": site.reader}
                page, said = browser.new_context(**look).new_page(), list[str]()
                page.on("console", lambda message, said=said: said.append(message.text))
                page.goto(f"{site.url}/machines")
                for width in WIDTHS:
                    page.set_viewport_size({"width": width, "height": 900})
                    assert page.evaluate("document.documentElement.scrollWidth") == width
                    found: Any = Axe().run(page).response["violations"]
                    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
                assert (said, page.title()) == ([], "Machines · assay")
    finally:
        site.end()
