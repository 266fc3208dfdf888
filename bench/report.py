"""The cost to build the reports of a big fleet, and the time until a browser shows them.

The runs are made without judging (`bench.made_runs`): 10,000 nodes with 100 outcomes each, and an earlier run to
compare with.
"""

from __future__ import annotations

import functools
import http.server
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from assay.declare.loader import load_fleet
from assay.ledger.history.append import append_missing_runs
from assay.ledger.runs.reader import StoredRun
from assay.ledger.store import Ledger
from bench.big_fleet import make as make_fleet
from bench.cost import cost
from bench.made_runs import make as make_runs
from bench.measurement import Measurement
from bench.programs import ASSAY, ROOT

NODES, EACH = 10_000, 100
BUILD_S, USABLE_S = 30.0, 10.0
FIRST = "pool-01"


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure the report of a fleet below `folder`, and its pages in headless Chromium."""
    fleet = make_fleet(folder / "reported", NODES)
    (fleet / ".assay").mkdir(exist_ok=True)
    with closing(Ledger.open(fleet / ".assay" / "ledger.sqlite")) as ledger:
        for path in make_runs(load_fleet(fleet), fleet / "reports", EACH, runs=2):
            with StoredRun.open(path) as stored:
                ledger.record(stored.run, stored.outcomes())
    append_missing_runs(fleet / "reports")
    command = [*ASSAY, "report", "--fleet", str(fleet)]
    (fleet / "node_modules").symlink_to(ROOT / "node_modules")
    start = time.monotonic()
    spent = cost(command, ROOT, times=1)
    parts = {"wall_s": time.monotonic() - start, "peak_mb": spent.peak_mb}
    what = f"{NODES:,} nodes, {NODES * EACH:,} outcomes"
    yield Measurement(f"assay report: {what}", spent.cpu_s, "CPU s", "at most", BUILD_S, parts)
    if shutil.which("chromium") is None:
        print("· Chromium is not installed: pages are not measured", file=sys.stderr)  # noqa: T201 — for people
        return
    for page, name in (("index.html", "overview"), ("allure/index.html", "Allure report")):
        usable = _usable_s(fleet / "reports", page)
        yield Measurement(f"{name} of {NODES:,} nodes: usable in Chromium", usable, "s", "at most", USABLE_S)


def _usable_s(folder: Path, page: str) -> float:
    """Return the seconds until the page shows the first pool and is idle."""
    from playwright.sync_api import sync_playwright

    with _served(folder) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page()
        start = time.monotonic()
        tab.goto(f"{address}/{page}")
        tab.get_by_text(FIRST, exact=False).first.wait_for(timeout=120_000)
        tab.evaluate("new Promise(done => requestIdleCallback(done))")
        spent = time.monotonic() - start
        browser.close()
    return spent


class _Silent(http.server.SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    handler = functools.partial(_Silent, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
