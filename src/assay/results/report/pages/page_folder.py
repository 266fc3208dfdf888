"""The folder of pages: writes each page, and deletes pages of what is gone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from assay.pages.rendering import read_stylesheet
from assay.results.report.pages.page_links import PAGES_FOLDER, page_file

STYLESHEET = "../style.css"
"""Pages share one file: the stylesheet inside each of ten thousand pages would be most of their size."""


def write_stylesheet(reports: Path) -> None:
    """Write the stylesheet that the pages below `reports` share."""
    folder = reports / PAGES_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "style.css").write_text(read_stylesheet(), encoding="utf-8")


def write_pages(folder: Path, pages: Iterable[tuple[str, str]]) -> None:
    """Write pages (name, HTML) as files of `folder`. Files of other names are deleted."""
    folder.mkdir(parents=True, exist_ok=True)
    written = set()
    for name, page in pages:
        file = folder / page_file(name)
        file.write_text(page, encoding="utf-8", errors="replace")
        written.add(file.name)
    for file in folder.glob("*.html"):
        if file.name not in written:
            file.unlink()
