"""The maps are true: what the pages name exists, and the rooms import what the table in ARCHITECTURE says."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.architecture.source_tree import SOURCE, read_source_modules
from tests.support.places import ROOT, TESTS

PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "docs/glossary.md", "docs/design.md")
PLACE = re.compile(r"`(?:src/assay/)?((?:[a-z_]+/)*[a-z_]+\.py)(?::([A-Za-z_.]+))?`")
"""`room/module.py` or `room/module.py:name`, below `src/assay`."""
FOLDER = re.compile(r"`((?:src|tests|specs|suites|docs|deploy|bench|playbooks|tools|inventory)/[A-Za-z0-9_./-]*)`")
EVERY_ROOM = ("cli",)
MAX_FUNCTIONS, MAX_MODULES = 12, 8
"""In one walk of ARCHITECTURE."""
OTHER_TESTS = {"architecture", "bench", "data", "deploy", "integration", "support", "tools"}
"""Folders of tests that are about no room of `src/assay`, or about several."""
FORKS = ["forked_python"]
"""A fork of a process that has imported what a program needs has that program's own path."""


def defines(path: Path, dotted: str) -> bool:
    """Whether a file defines a function, class, method or constant."""
    body: list[ast.stmt] = ast.parse(path.read_text()).body
    for name in dotted.split("."):
        found = [node for node in body if getattr(node, "name", "") == name or name in _assigned(node)]
        if not found:
            return False
        body = getattr(found[0], "body", [])
    return True


def _assigned(node: ast.stmt) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def read_rooms_table() -> dict[str, tuple[str, str]]:
    """Return each room's entry points and permitted imports, as ARCHITECTURE has them."""
    rows = re.findall(r"^\| `(\w+)/` \|[^|]*\|([^|]*)\|([^|]*)\|$", (ROOT / "ARCHITECTURE.md").read_text(), re.M)
    return {room: (entry.strip(), allowed.strip()) for room, entry, allowed in rows}


def read_contracts() -> dict[str, set[str]]:
    """Return, for each room, the rooms that its import contract forbids."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    named = [one for one in contracts if one["name"].startswith("room ")]
    return {one["name"].split()[1]: {name.split(".")[1] for name in one["forbidden_modules"]} for one in named}


ROOMS = sorted({module.room for module in read_source_modules() if module.room})


def test_the_table_has_every_room() -> None:
    assert sorted(read_rooms_table()) == ROOMS


def test_tests_lie_in_the_folders_of_what_they_are_about() -> None:
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    known = {path.parent.relative_to(SOURCE / "assay") for path in (SOURCE / "assay").rglob("*.py")}
    assert {folder.as_posix() for folder in folders - known if folder.parts[0] not in OTHER_TESTS} == set()


def test_modules_of_tests_are_found_as_a_package() -> None:
    """`pythonpath` in pyproject.toml is enough: whoever changes `sys.path` gives modules a second name."""
    texts = {path.stem: text for path in TESTS.rglob("*.py") if "sys.path" in (text := path.read_text())}
    changing = [
        name
        for name, text in texts.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr | ast.Assign | ast.AugAssign) and ast.unparse(node).startswith("sys.path")
    ]
    assert changing == FORKS


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_may_import_what_the_table_says(room: str) -> None:
    allowed = read_rooms_table()[room][1]
    if room in EVERY_ROOM:
        assert allowed.startswith("every room")
        return
    names = {name.strip() for name in allowed.split(",") if name.strip() != "–"}
    assert set(ROOMS) - read_contracts()[room] - {room} == names


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_starts_where_the_table_says(room: str) -> None:
    for file, name in PLACE.findall(read_rooms_table()[room][0]):
        path = SOURCE / "assay" / room / file
        assert path.is_file(), path
        assert not name or defines(path, name), f"{path}:{name}"


def read_walks() -> dict[str, set[tuple[str, str]]]:
    """Return the places that each walk of ARCHITECTURE names, by its title."""
    section = (ROOT / "ARCHITECTURE.md").read_text().partition("## Walks")[2].partition("\n## ")[0]
    parts = re.split(r"(?m)^\*\*(.+)\*\*$", section)[1:]
    return {title: set(PLACE.findall(text)) for title, text in zip(parts[::2], parts[1::2], strict=True)}


@pytest.mark.parametrize("title", read_walks())
def test_a_walk_is_short_enough_to_be_kept_in_mind(title: str) -> None:
    places = read_walks()[title]
    assert len(places) <= MAX_FUNCTIONS
    assert len({file for file, _ in places}) <= MAX_MODULES


def test_the_folders_of_each_feature_exist() -> None:
    table = (ROOT / "ARCHITECTURE.md").read_text().partition("## Features")[2].partition("\n## ")[0]
    folders = re.findall(r"`((?:[a-z_]+/)+)`", table)
    assert folders
    assert [folder for folder in folders if not (SOURCE / "assay" / folder).is_dir()] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_only_what_exists(page: str) -> None:
    text = (ROOT / page).read_text()
    prose = "\n".join(
        line for line in text.splitlines() if not line.startswith("| `")
    )  # a table row names its room first
    for file, name in PLACE.findall(prose):
        if "/" not in file:
            continue
        path = SOURCE / "assay" / file
        if not path.is_file():
            path = ROOT / file
        assert path.is_file(), f"{page}: {file}"
        assert not name or defines(path, name), f"{page}: {file}:{name}"
    missing = [name for name in FOLDER.findall(text) if "<" not in name and not list(ROOT.glob(name.rstrip("/")))]
    assert missing == []


@pytest.mark.parametrize(
    "page", sorted(str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
)
def test_a_page_links_only_to_what_exists(page: str) -> None:
    folder = (ROOT / page).parent
    links = re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", (ROOT / page).read_text())
    assert [link for link in links if not (folder / link).exists()] == []
