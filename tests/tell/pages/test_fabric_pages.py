"""The pages of the fabric: what is wrong is drawn, each switch shows its ports, and unknown is never as designed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from starlette.applications import Starlette

from assay.fabric.compare.discrepancy import CablePair, CablingDiscrepancy
from assay.fabric.fault_drawing import draw_discrepancy
from assay.model.specs.fabric.cable import Cable, CableEnd
from assay.tell.pages import page_routes
from assay.tell.views.fabric_view import ScannedFabric
from assay.tell.views.records import LiveRecords
from tests.tell.asgi_calls import Caller, make_state
from tests.tell.fleet_with_history import make_fleet_with_history
from tests.tell.pages.scanned_fabric import EXCHANGED, MISSING, MOVED, store_faulty_scan

SVG = "{http://www.w3.org/2000/svg}"
LEAF = "leaf-su01-r3"


@pytest.fixture(params=["scanned", "never scanned"])
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Caller:
    fleet = make_fleet_with_history(tmp_path)
    if request.param == "scanned":
        store_faulty_scan(fleet, tmp_path / ".assay")
    return Caller.reading(Starlette(routes=page_routes.routes(make_state(fleet, tmp_path / ".assay"))))


def read(site: Caller, path: str) -> str:
    reply = site.get(path)
    assert reply.status == 200
    return reply.body.decode()


@pytest.mark.parametrize("site", ["scanned"], indirect=True)
def test_each_fault_is_drawn_with_links_to_both_its_ends(site: Caller) -> None:
    page = read(site, "/fabric")
    assert page.count('<svg class="fault-drawing"') == 3
    for node in (*EXCHANGED, MISSING, MOVED):
        assert f'href="/nodes/{node}"' in page
    assert f'href="/fabric/{LEAF}"' in page
    assert page.count("its ticket") == 3


@pytest.mark.parametrize("site", ["scanned"], indirect=True)
def test_of_many_fabrics_one_is_shown_and_the_others_are_a_click_away(
    site: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.tell.pages.fabric_pages.MAX_FABRICS", 1)
    names = ["a-cold-one", "compute"]
    designs = [SimpleNamespace(name=name) for name in names]
    monkeypatch.setattr("assay.tell.pages.fabric_pages.list_used_designs", lambda _: designs)
    assert [f'href="/fabric?fabric={name}"' in read(site, "/fabric") for name in names] == [True, True]
    assert 'class="fault-drawing"' not in read(site, "/fabric")
    assert read(site, "/fabric?fabric=compute").count('<svg class="fault-drawing"') == 3


def test_a_switch_and_a_guid_are_found_without_the_scans_of_other_fabrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, asked, read_all = make_fleet_with_history(tmp_path), list[str](), LiveRecords.read_fabrics

    def note(records: LiveRecords, only: str = "") -> list[ScannedFabric]:
        asked.append(only)
        return read_all(records, only)

    monkeypatch.setattr(LiveRecords, "read_fabrics", note)
    site = Caller.reading(Starlette(routes=page_routes.routes(make_state(fleet, tmp_path / ".assay"))))
    assert LEAF in read(site, f"/fabric/{LEAF}")
    assert asked == ["compute"]
    guid = fleet.nodes["n0003"].hca_guids[0]
    assert site.get(f"/search?text={guid}").headers["location"] == "/nodes/n0003"
    assert asked == ["compute"]


def test_foreign_lines_are_named(tmp_path: Path) -> None:
    fleet = make_fleet_with_history(tmp_path)
    store_faulty_scan(fleet, tmp_path / ".assay", pasted="admin@head:~$ ibnetdiscover\n" * 14)
    site = Caller.reading(Starlette(routes=page_routes.routes(make_state(fleet, tmp_path / ".assay"))))
    page = read(site, "/fabric")
    assert "Foreign lines in the scan:" in page
    assert page.count("line 1 is none of ibnetdiscover&#39;s and was skipped") == 1
    assert "<li>and 2 more</li>" in page


@pytest.mark.parametrize("site", ["scanned"], indirect=True)
def test_a_switch_shows_which_of_its_ports_are_wrong(site: Caller) -> None:
    page = read(site, f"/fabric/{LEAF}")
    assert page.count('<li class="wrong">') == 5, "two exchanged, one missing, one empty and one too many"
    assert '<li class="right">' in page
    assert 'class="wrong"' not in read(site, "/fabric/leaf-su01-r0")


@pytest.mark.parametrize("site", ["never scanned"], indirect=True)
def test_a_fabric_that_nobody_scanned_is_not_as_designed(site: Caller) -> None:
    assert "Nothing is known of its cables." in read(site, "/fabric")
    page = read(site, f"/fabric/{LEAF}")
    assert '<li class="right">' not in page
    assert '<li class="unknown">' in page


@pytest.mark.parametrize("site", ["scanned"], indirect=True)
def test_the_page_of_a_node_shows_its_own_cables(site: Caller) -> None:
    assert read(site, f"/nodes/{MISSING}").count('<svg class="fault-drawing"') == 1
    assert '<svg class="fault-drawing"' not in read(site, "/nodes/n0003")


def test_there_is_no_page_for_an_unknown_switch(site: Caller) -> None:
    assert site.get("/fabric/leaf-9").status == 404


def end(name: str, port: int = 1) -> CableEnd:
    return CableEnd(name, f"0x{hash(name) % 10**15:016x}", port, "1/1", "r01", 4)


def draw(*pairs: CablePair) -> ElementTree.Element:
    return ElementTree.fromstring(
        draw_discrepancy(CablingDiscrepancy("swap", pairs, '<b> & "what"')).replace(
            "<svg ", f'<svg xmlns="{SVG[1:-1]}" ', 1
        )
    )


def list_kinds(root: ElementTree.Element) -> list[str]:
    return sorted(group.get("class", "") for group in root.iter(f"{SVG}g") if group.get("class") != "end")


def test_a_swap_has_two_lines_as_designed_and_two_as_they_are() -> None:
    a, b, x, y = (end(name) for name in "abxy")
    root = draw(CablePair(Cable(a, x), Cable(a, y)), CablePair(Cable(b, y), Cable(b, x)))
    assert list_kinds(root) == ["designed", "designed", "seen", "seen"]
    assert len(list(root.iter(f"{SVG}rect"))) == 4


def test_a_missing_cable_and_a_loop_on_one_device_are_drawn() -> None:
    assert list_kinds(draw(CablePair(Cable(end("a"), end("x")), None))) == ["designed"]
    assert list_kinds(draw(CablePair(None, Cable(end("a", 1), end("a", 2))))) == ["seen"]


def test_the_text_of_devices_stays_text() -> None:
    root = draw(CablePair(Cable(end("<script>alert(1)</script>"), end("x")), None))
    assert not list(root.iter(f"{SVG}script"))
    assert any((text.text or "").startswith("<script>") for text in root.iter(f"{SVG}text"))
