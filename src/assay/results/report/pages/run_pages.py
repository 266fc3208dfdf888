"""Writes the page of each run: its counts and the groups of what did not pass.

A page is written again where its run was resumed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from assay.model.errors import AssayError
from assay.pages.rendering import render_page
from assay.results.outcome_lines import describe_run
from assay.results.report import overview_phrases
from assay.results.report.pages.page_folder import STYLESHEET
from assay.results.report.pages.page_links import PageLinks, page_file
from assay.results.run_summary import RunSummary
from assay.results.store.reader import StoredRun

MAX_RUNS, MAX_GROUPS = 30, 100
"""Runs that get a page, the newest ones, and groups that a page shows."""


def write_run_pages(folder: Path, runs: Iterable[Path], links: PageLinks) -> set[str]:
    """Write the pages of the newest of `runs` (files, oldest first) that have no current one.

    Returns the runs with a page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = set()
    for path in list(runs)[-MAX_RUNS:]:
        file = folder / page_file(path.parent.name)
        if _is_current(file, path) or _write_run(file, path, links):
            found.add(path.parent.name)
    return found


def _is_current(file: Path, path: Path) -> bool:
    """Return whether the page is newer than the run, which may have been resumed."""
    return file.exists() and file.stat().st_mtime_ns >= path.stat().st_mtime_ns


def _write_run(file: Path, path: Path, links: PageLinks) -> bool:
    """Return whether the run could be read; the report names runs that cannot."""
    try:
        with StoredRun.open(path) as stored:
            page = render_run(RunSummary(stored), links)
    except AssayError:
        return False
    file.write_text(page, encoding="utf-8", errors="replace")
    return True


def render_run(summary: RunSummary, links: PageLinks) -> str:
    """Return the HTML of the page of a run."""
    groups = summary.groups()
    return render_page(
        __package__,
        "run.html.j2",
        in_lab=links.in_lab,
        stylesheet=STYLESHEET,
        summary=summary,
        about=describe_run(summary.run),
        groups=groups[:MAX_GROUPS],
        left=max(0, len(groups) - MAX_GROUPS),
        words=overview_phrases,
        link=links,
    )
