"""The documentation stays short enough to be read: a budget of the words and pages that people write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.support.places import ROOT

MAX_PAGES, MAX_WORDS, MAX_README_WORDS = 45, 45_000, 1_200
"""May fall. They rise only in a commit that says for what."""
ELSEWHERE = (
    "src/assay/declare/starter/own/README.md",
    "playbooks/collections/ansible_collections/assay/fleet/README.md",
)
GENERATED = ("commands.md", "checks.md", "metrics.md")
NOT_COUNTED = ("CHANGELOG.md", "CODE_OF_CONDUCT.md")
FAULT_TABLE = "| fault | what it is |"
"""Where the generated part of docs/faults.md begins."""


def list_written_pages() -> list[Path]:
    docs = ROOT / "docs"
    generated = {docs / name for name in GENERATED} | set((docs / "reference").rglob("*.md"))
    root = [path for path in ROOT.glob("*.md") if path.name not in NOT_COUNTED]
    return sorted({*root, *docs.rglob("*.md"), *(ROOT / name for name in ELSEWHERE)} - generated)


def count_words(page: Path) -> int:
    text = page.read_text(encoding="utf-8")
    return len((text.partition(FAULT_TABLE)[0] if page.name == "faults.md" else text).split())


def list_anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    prose = re.sub(r"(?ms)^\s*```.*?^\s*```", "", page.read_text(encoding="utf-8"))
    headings = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line) for line in re.findall(r"(?m)^#+ (.*)$", prose))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def test_the_documentation_is_short_enough_to_be_read() -> None:
    words = {page.relative_to(ROOT).as_posix(): count_words(page) for page in list_written_pages()}
    longest = sorted(words, key=lambda name: -words[name])[:5]
    assert len(words) <= MAX_PAGES, "merge a page into another, or cut one"
    assert sum(words.values()) <= MAX_WORDS, f"cut words, or leave them to the generated reference; longest: {longest}"


def test_the_readme_comes_to_the_point() -> None:
    assert count_words(ROOT / "README.md") <= MAX_README_WORDS


@pytest.mark.parametrize("page", list_written_pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_links_to_sections_that_there_are(page: Path) -> None:
    links = re.findall(r"\]\((?![a-z]+:)([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    targets = [(page.parent / file if file else page, anchor) for file, anchor in links]
    missing = [f"{file.name}#{anchor}" for file, anchor in targets if anchor not in list_anchors(file)]
    assert missing == []


QUESTIONS = [
    (question, ROOT / answer["page"], answer["words"])
    for asked in yaml.safe_load((ROOT / "tests/architecture/questions.yaml").read_text()).values()
    for question, answer in asked.items()
]


def list_linked(page: Path) -> set[Path]:
    """Return the pages to which a page leads."""
    links = re.findall(r"\]\((?![a-z]+:)([^)#\s]+\.md)", page.read_text(encoding="utf-8"))
    return {(page.parent / link).resolve() for link in links}


@pytest.mark.parametrize(("question", "page", "words"), QUESTIONS, ids=[question for question, *_ in QUESTIONS])
def test_an_answer_is_at_most_two_clicks_away(question: str, page: Path, words: str) -> None:
    near = {ROOT / "README.md"}
    for _ in range(2):
        near |= {linked for known in near for linked in list_linked(known)}
    assert page in near, question
    assert words in page.read_text(encoding="utf-8"), question


def test_no_two_pages_have_one_title() -> None:
    pages = [*list_written_pages(), *(ROOT / "docs/reference").glob("*.md")]
    titles = [re.sub(r"\W", "", page.read_text(encoding="utf-8").partition("\n")[0].lower()) for page in pages]
    assert sorted(titles) == sorted({*titles}), "a search shows both, and nobody knows the guide from the reference"
