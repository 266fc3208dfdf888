"""Nothing is deleted that cannot be made again: every place of the source that deletes, with what protects it.

A new place fails here until somebody has written down what protects it. What is no reason: that it is old, or that it
is large. Ledgers, seals, tokens and tickets have no row, since nothing deletes them.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.architecture.deletions import find_deletions
from tests.architecture.source_tree import SOURCE, SourceModule, read_source_modules

PROTECTED = yaml.safe_load(Path(__file__).with_name("deletions.yaml").read_text())


@pytest.fixture(scope="module")
def places() -> set[str]:
    return {place for module in read_source_modules() for place in find_deletions(module)}


def test_each_place_that_deletes_says_what_protects_it(places: set[str]) -> None:
    listed = Counter(place for group in PROTECTED.values() for place in group)
    assert {place for place, count in listed.items() if count > 1} == set()
    assert places - set(listed) == set(), "write into deletions.yaml what protects each of them"
    assert set(listed) - places == set(), "they delete nothing any more: take their rows out"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("def f(p):\n    p.unlink()", "f: unlink"),
        ("import shutil\ndef f(p):\n    shutil.rmtree(p)", "f: rmtree"),
        ("def f(p):\n    weakref.finalize(p, shutil.rmtree, p)", "f: rmtree"),
        ("from shutil import rmtree\ndef f(p):\n    rmtree(p)", "f: rmtree"),
        ("import os\nclass A:\n    def f(self, p):\n        os.remove(p)", "A.f: remove"),
        ("import shutil\ndef f(p):\n    shutil.move(p, '/gone')", "f: move"),
        ("def f(c):\n    c.execute('delete', 'DELETE\\n FROM entry')", "f: DELETE FROM"),
        ("def f(c, t):\n    c.execute(f'DROP TABLE {t}')", "f: DROP TABLE"),
        ("import sqlalchemy as sa\ndef f(c, t):\n    c.execute(sa.delete(t))", "f: delete"),
        ("def f(m, e):\n    m.drop_all(e)", "f: drop_all"),
        ("def f(run):\n    run(['git', 'clean', '-fd'])", "f: git clean"),
        ("def f(file):\n    file.truncate(0)", "f: truncate"),
    ],
)
def test_a_planted_deletion_is_found(text: str, what: str, tmp_path: Path) -> None:
    assert list(find_deletions(_Planted(tmp_path, text))) == [f"planted.py:{what}"]


@pytest.mark.parametrize(
    "text",
    ["def f(names):\n    names.remove('a')", "def f(old, new):\n    old.replace(new)", "'we never DELETE a row'"],
)
def test_what_deletes_nothing_is_not_found(text: str, tmp_path: Path) -> None:
    assert list(find_deletions(_Planted(tmp_path, text))) == []


class _Planted(SourceModule):
    def __init__(self, folder: Path, text: str) -> None:
        super().__init__(SOURCE / "assay" / "planted.py", "assay.planted")
        object.__setattr__(self, "tree", ast.parse(text))
