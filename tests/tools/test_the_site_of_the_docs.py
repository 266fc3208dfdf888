"""The site of the documentation has every page, and its links lead to pages."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.places import ROOT
from tools.site.pages import ROOT_PAGES, move_links


def places(part: Any) -> list[str]:
    if isinstance(part, str):
        return [part]
    return [place for one in (part.values() if isinstance(part, dict) else part) for place in places(one)]


def test_every_page_has_one_place_in_the_navigation() -> None:
    named = places(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    pages = {file.relative_to(ROOT / "docs").as_posix() for file in (ROOT / "docs").rglob("*.md")}
    assert sorted(named) == sorted(pages | set(ROOT_PAGES.values())), "name new pages in mkdocs.yml"


@pytest.mark.parametrize(
    ("origin", "place", "text", "moved"),
    [
        ("README.md", "index.md", "[a](docs/lab.md#up)", "[a](lab.md#up)"),
        ("README.md", "index.md", "![a](docs/loop.svg)", "![a](loop.svg)"),
        ("docs/design.md", "design.md", "[a](../ARCHITECTURE.md)", "[a](architecture.md)"),
        ("docs/tutorials/own-fleet.md", "tutorials/own-fleet.md", "[a](../metrics.md#b)", "[a](../metrics.md#b)"),
        ("docs/tutorials/own-fleet.md", "tutorials/own-fleet.md", "[a](../../README.md)", "[a](../index.md)"),
        ("SECURITY.md", "security.md", "see [OWNERS](CODEOWNERS).", "see OWNERS."),
        ("docs/alerts.md", "alerts.md", "in [tutorials/](tutorials/)", "in tutorials/"),
        ("docs/lab.md", "lab.md", "[a](https://example.org/b) [c](#d)", "[a](https://example.org/b) [c](#d)"),
        ("docs/lab.md", "lab.md", "[a](nothing.md) [b](../nowhere)", "[a](nothing.md) [b](nowhere)"),
    ],
)
def test_a_link_leads_to_where_its_page_is(origin: str, place: str, text: str, moved: str) -> None:
    assert move_links(text, origin, place, ROOT) == moved


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    run = ["git", "clone", "--quiet", str(ROOT), str(clone := tmp_path / "clone")]
    subprocess.run(run, check=True)
    made = subprocess.run(["make", "docs"], cwd=clone, capture_output=True, text=True, check=False)
    if made.returncode and "No matching distribution" in made.stderr:
        pytest.skip("no package index here: let pip reach one, by its own configuration")
    assert made.returncode == 0, made.stdout + made.stderr
    site = clone / "dist" / "site"
    assert "How a design wires a fabric" in (site / "search" / "search_index.json").read_text()
    loaded = re.findall(
        r"<(?:script|img|link rel=\"stylesheet\")[^>]*(?:src|href)=\"([^\"]+)", (site / "index.html").read_text()
    )
    assert loaded
    assert [one for one in loaded if "://" in one] == []
