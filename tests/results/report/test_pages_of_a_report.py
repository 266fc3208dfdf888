"""The overview's links open pages of our own from the file system: nodes, racks, checks and runs."""

from __future__ import annotations

import html
import os
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from browser import needs_browser, open_browser
from hypothesis import given
from hypothesis import strategies as st

from assay.model.outcome import Measurement
from assay.results.report.overview_page import render_overview
from assay.results.report.pages.page_links import PageLinks, page_file
from assay.results.report.report_builder import AllureTools, build_reports

NODES = [f"n{number:04}" for number in range(1, 17)]


@pytest.fixture
def declared(runs, monkeypatch):
    """Runs of a fleet without Allure; every check of the first catalog is declared."""
    monkeypatch.setattr(AllureTools, "find_installed", classmethod(lambda _, __: None))
    return next(check.id for catalog in runs.fleet.check_catalogs.values() for check in catalog.checks)


def build(runs) -> Path:
    """Build the report; Allure is not installed."""
    with pytest.raises(Exception, match="Allure report needs Node"):
        build_reports(runs.fleet, runs.folder, runs.folder / "evidence")
    return runs.folder / "index.html"


def links_of(page: Path) -> list[Path]:
    """Return the files that a page links to."""
    found = re.findall(r'href="([^"#]+)', page.read_text())
    return [page.parent / unquote(html.unescape(link)) for link in found if "://" not in link]


def judge(runs, check, hours=0.0, ill=("n0003",)):
    """Store a run in which a check fails on some nodes."""
    reading = Measurement("width", 8.0, "lanes", at_least=16.0, source="specs/nodes/hgx-h100.yaml:1")
    bad = {"verdict": "fail", "reason": "<b>8 lanes", "measurements": (reading,)}
    return runs.run(
        hours, *(runs.outcome(node, check, "gpu3", hours, **(bad if node in ill else {})) for node in NODES)
    )


def test_every_link_of_every_page_opens_a_file_that_is_there(runs, declared):
    judge(runs, declared, -24)
    judge(runs, declared, 0, ill=("n0003", "n0004"))
    overview = build(runs)
    pages = [overview, *(runs.folder / "pages").rglob("*.html")]
    assert {page.parent.name for page in pages[1:]} == {"nodes", "checks", "runs"}
    for page in pages:
        for target in links_of(page):
            assert target.resolve().is_file(), f"{page} → {target}"
    assert {target.name for target in links_of(overview)} >= {"n0003.html", page_file(declared)}
    assert not any("allure" in str(target) for target in links_of(overview)), "it is not there"


def test_the_page_of_a_node_says_what_fails_with_its_limit_and_leads_to_check_and_run(runs, declared):
    run = judge(runs, declared).parent.name
    build(runs)
    page = (runs.folder / "pages/nodes/n0003.html").read_text()
    assert "&lt;b&gt;8 lanes" in page
    assert "width 8 lanes (at least 16; specs/nodes/hgx-h100.yaml:1)" in page
    assert f'href="../../pages/checks/{page_file(declared)}"' in page
    assert f'href="../../pages/runs/{page_file(run)}"' in page
    assert "1 of 1 check passed" in (runs.folder / "pages/nodes/n0002.html").read_text()


def test_the_page_of_a_check_groups_by_cause(runs, declared):
    judge(runs, declared, ill=NODES[:5])
    build(runs)
    page = (runs.folder / "pages/checks" / page_file(declared)).read_text()
    assert page.count('class="card') == 1
    assert "5 places" in page


def test_pages_of_what_is_gone_are_deleted(runs, declared):
    judge(runs, declared)
    build(runs)
    assert (runs.folder / "pages/nodes/n0003.html").exists()
    runs.fleet = replace(runs.fleet, nodes={name: node for name, node in runs.fleet.nodes.items() if name != "n0003"})
    judge(runs, declared, 1)
    build(runs)
    assert not (runs.folder / "pages/nodes/n0003.html").exists()


def test_the_page_of_a_run_that_was_resumed_is_written_again(runs, declared):
    run = judge(runs, declared)
    build(runs)
    page = runs.folder / "pages/runs" / page_file(run.parent.name)
    page.write_text("old")
    build(runs)
    assert page.read_text() == "old", "nothing changed"
    later = page.stat().st_mtime_ns + 1_000_000_000
    os.utime(run, ns=(later, later))
    build(runs)
    assert "16 outcomes on 16 nodes" in page.read_text()


def test_where_allure_is_the_page_leads_to_it_too(runs):
    runs.run(0, runs.outcome("n0003", verdict="fail"))
    page = render_overview(runs.overview(), links=PageLinks(newest="r1"))
    assert 'href="allure/index.html"' in page
    assert 'href="pages/nodes/n0003.html"' in page


@given(st.lists(st.text(min_size=1), min_size=2, max_size=6, unique=True))
def test_a_page_s_file_is_its_own_and_stays_in_its_folder(names):
    files = [page_file(name) for name in names]
    assert len(set(files)) == len(files)
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+\.html", file) for file in files)


@pytest.mark.slow
@needs_browser
def test_pages_fit_a_phone_and_no_count_is_clipped(runs, declared):
    names = [check.id for catalog in runs.fleet.check_catalogs.values() for check in catalog.checks]
    *others, longest, second = sorted(names, key=lambda name: len(name.rpartition("::")[2]))
    runs.run(-24, *(runs.outcome("n0001", check, hours=-24, verdict="fail") for check in (longest, second)))
    fixed = [runs.outcome("n0001", check) for check in (longest, second)]
    runs.run(0, *fixed, *(runs.outcome("n0003", check, verdict="fail") for check in others[-14:]))
    overview = build(runs)
    files = [overview, runs.folder / "pages/nodes/n0003.html", next((runs.folder / "pages/runs").glob("*.html"))]
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 800})
        for file in files:
            page.goto(file.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, file
        page.goto(overview.as_uri())
        clipped = page.evaluate(
            "[...document.querySelectorAll('.rack a')].filter(a => a.scrollWidth > a.clientWidth).length"
        )
        assert clipped == 0
        page.get_by_role("link", name="n0003 14").click()
        assert page.url.endswith("pages/nodes/n0003.html")
        assert "14 failed" in page.content()


def test_the_map_names_its_racks_at_every_size(runs, monkeypatch):
    runs.run(0, *(runs.outcome(node) for node in NODES))
    one = runs.overview()
    for limit in ("MAX_ROOMY_NODES", "MIN_DENSE_NODES"):
        monkeypatch.setattr(f"assay.results.report.overview_page.{limit}", 1)
        assert "<span>r02</span>" in render_overview(one)
