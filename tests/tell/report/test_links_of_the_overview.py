"""The overview's links lead to the Allure report where there is one, and to nothing that is not there."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from assay.model.entries.node_entries import NodeEnrolledEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Measurement
from assay.tell.report.allure import AllureLinks
from assay.tell.report.report_builder import AllureTools, build_reports, render_overview
from tests.support.browser import needs_browser, open_browser
from tests.tell.report.conftest import at

NODES = [f"n{number:04}" for number in range(1, 17)]


@pytest.fixture
def declared(runs, monkeypatch):
    """Runs of a fleet without Allure; every check of the first catalog is declared."""
    monkeypatch.setattr(AllureTools, "find_installed", classmethod(lambda _, __: None))
    return next(check.id for catalog in runs.fleet.check_catalogs.values() for check in catalog.checks)


def build(runs) -> Path:
    """Build the report; Allure is not installed."""
    runs.standing()
    with pytest.raises(Exception, match=r"Allure report needs Node.*\n.*`npm ci` in the fleet repository"):
        build_reports(runs.fleet, runs.ledger, runs.folder, runs.folder / "evidence")
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


def test_every_link_opens_a_file_that_is_there(runs, declared):
    judge(runs, declared, -24)
    judge(runs, declared, 0, ill=("n0003", "n0004"))
    overview = build(runs)
    assert all(target.is_file() for target in links_of(overview))
    assert not any("allure" in str(target) for target in links_of(overview)), "it is not there"


def test_where_allure_is_nodes_lead_to_their_results(runs):
    runs.run(0, runs.outcome("n0003", verdict="fail"))
    page = render_overview(runs.overview(), links=AllureLinks("r1"))
    assert 'href="allure/index.html"' in page
    result = AllureLinks("r1").holder("n0003")
    assert re.fullmatch(r"allure/index\.html#[0-9a-f]{32}", result)
    assert re.search(f'<a href="{result}" class="new" title="r01 n0003', page)
    assert "href=" not in render_overview(runs.overview()).partition("</style>")[2], "nothing to lead to"


@pytest.mark.slow
@needs_browser
def test_pages_fit_a_phone_and_no_count_is_clipped(runs, declared):
    names = [check.id for catalog in runs.fleet.check_catalogs.values() for check in catalog.checks]
    *others, longest, second = sorted(names, key=lambda name: len(name.rpartition("::")[2]))
    runs.run(-24, *(runs.outcome("n0001", check, hours=-24, verdict="fail") for check in (longest, second)))
    fixed = [runs.outcome("n0001", check) for check in (longest, second)]
    runs.run(0, *fixed, *(runs.outcome("n0003", check, verdict="fail") for check in others[-14:]))
    overview = build(runs)
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.goto(overview.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        clipped = page.evaluate(
            "[...document.querySelectorAll('.rack i')].filter(a => a.scrollWidth > a.clientWidth).length"
        )
        assert clipped == 0
        assert page.get_by_text("n0003 14").count() == 1


def test_the_map_names_its_racks_at_every_size(runs, monkeypatch):
    runs.run(0, *(runs.outcome(node) for node in NODES))
    one = runs.overview()
    for limit in ("MAX_ROOMY_NODES", "MIN_DENSE_NODES"):
        monkeypatch.setattr(f"assay.tell.report.report_builder.{limit}", 1)
        assert "<span>r02</span>" in render_overview(one)


def test_a_fault_that_only_a_log_told_is_on_the_page(runs, declared):
    judge(runs, declared, ill=())
    when = at(-1)
    words = {"severity": "catastrophic", "blame": "hardware", "remedy": "reboot", "count": 1, "detail": "fell off"}
    seen = {"first_seen": when, "last_seen": when, "marks": {"kernel": "boot:1"}, "times": [when]}
    fault = {"fault": "f1", "class": "gpu.xid.79", "subject": "h100-a/n0007/gpu1", **words, **seen}
    runs.ledger.append(
        NodeEnrolledEntry("h100-a", "production").make_entry("e7", when, "n0007"),
        LedgerEntry("f7", when, "fault", "n0007", fault),
    )
    page = html.unescape(build(runs).read_text())
    assert "gpu.xid.79: fell off" in page
    assert "1 incident on 1 node in the first run" in page
