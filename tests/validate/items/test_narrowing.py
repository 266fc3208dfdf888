"""What no item need be made of is told before there are items, and never differs from what pytest would have left."""

from __future__ import annotations

import json

import pytest

from assay.declare.loader import load_fleet
from assay.validate.items.suite_hooks import ItemFactory
from assay.validate.runs.command_line import ANY_SUBJECT, ExpressionFilter, KeywordPattern, SelectedSubjects
from assay.validate.runs.subjects import PART_KINDS, NodeSelection

pytest_plugins = ["pytester"]

SUITE = '''
"""A check for every kind of subject."""
import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]

def test_host(node): pass

def test_pcie_link(gpu): pass

@pytest.mark.active
@pytest.mark.fault("ib.link.errors")
def test_port(hca): pass

def test_air(rack): pass

@pytest.mark.parametrize("many", [1, 2])
def test_many(node, many): pass

test_air.owner = "fabric"
'''
EXPRESSIONS = [
    "n0003",
    "n0003 and pcie",
    "not n0003 and host",
    "gpu3 or air",
    "h100-a/n0003/gpu3",
    "N0003 and GPU3",
    "not gpu3 and not n0017 and pcie",
    "pcie_link[h100",
    "n0017 and (host or gpu7)",
    "active",
    "owner",
    "not owner and not host",
    "rack-r01",
    "nothing_like_this",
    "test_own and n0004 and (gpu0 or gpu1 or gpu2 or gpu3 or gpu4 or gpu5 or gpu6)",
    "suites and many and 2",
    "n0003/g",
]


@pytest.fixture
def small(fleet_copy):
    fleet_copy.suite(SUITE)
    return fleet_copy


def ids(fleet, *options: str) -> set[str]:
    result = fleet.pytest("--collect-only", "-q", "--assay-rack", "r01", "--assay-rack", "r05", *options)
    return {line.split("::")[1] for line in result.outlines if "::test" in line}


def test_k_and_m_leave_what_pytest_leaves(small, monkeypatch):
    asked = [("-k", words) for words in EXPRESSIONS] + [("-m", "active"), ("-m", "not passive"), ("-m", "phase")]
    narrow = [ids(small, *one) for one in asked]
    with monkeypatch.context() as patched:
        patched.setattr(ExpressionFilter, "pattern_of", lambda self, example: ANY_SUBJECT)
        whole = [ids(small, *one) for one in asked]
    for one, few, all_that_fit in zip(asked, narrow, whole, strict=True):
        assert few == all_that_fit, one


def test_items_are_made_of_what_is_left_only(small, monkeypatch):
    made = []
    items = ItemFactory.make_items
    monkeypatch.setattr(
        ItemFactory, "make_items", lambda self, check, module, of: made.extend(of) or items(self, check, module, of)
    )
    assert len(ids(small, "-k", "n0003 and pcie")) == len(made) == 8
    made.clear()
    small.pytest("--collect-only", f"{small.root}/suites/test_own.py::test_host[h100-a/n0003]")
    assert len(made) > 100  # the folder was asked for as well
    made.clear()
    own = f"{small.root}/suites/test_own.py::test_host[h100-a/n0003]"
    small.pytester.runpytest_inprocess(own, "--co", "-p", "assay.validate.plugin", f"--rootdir={small.root}")
    assert [one.id for one in made] == ["h100-a/n0003"]


def test_lf_makes_items_of_what_failed_only(small, monkeypatch):
    made = []
    items = ItemFactory.make_items
    monkeypatch.setattr(
        ItemFactory, "make_items", lambda self, check, module, of: made.extend(of) or items(self, check, module, of)
    )
    own = "suites/test_own.py::test_pcie_link[h100-a/{}/gpu3]"
    failed = small.root / ".pytest_cache" / "v" / "cache" / "lastfailed"
    failed.parent.mkdir(parents=True)
    words = ["--co", "-q", "--lf", "-p", "assay.validate.plugin", f"--rootdir={small.root}", f"{small.root}/suites"]

    def run_last_failed(name: str, *more: str) -> list[str]:
        made.clear()
        failed.write_text(json.dumps({own.format(name): True}))
        result = small.pytester.runpytest_inprocess(*words, "-p", "cacheprovider", *more)
        return [line for line in result.outlines if "::test" in line]

    assert run_last_failed("n0003") == [own.format("n0003")]
    assert [one.id for one in made] == ["h100-a/n0003/gpu3"]
    assert len(run_last_failed("n0003", "-k", "n0004")) > 8, "as pytest: nothing of what failed is selected"
    assert len(run_last_failed("gone")) > 100, "as pytest: what failed is no more"


def test_an_ordinary_item_that_is_repeated_more_often_can_be_asked_for_by_its_id(small):
    own = f"{small.root}/suites/test_own.py::test_many[h100-a/n0003-2]"
    words = ["--co", "-q", "-p", "assay.validate.plugin", f"--rootdir={small.root}"]
    result = small.pytester.runpytest_inprocess(own, *words)
    assert result.outlines[0].endswith("suites/test_own.py::test_many[h100-a/n0003-2]")


@pytest.mark.parametrize("words", ["n0003 and", "(", "host(a=1)"])
def test_an_expression_that_is_none_is_pytests_to_refuse(small, words):
    assert small.pytest("-k", words).ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("kind", ["node", *PART_KINDS, "rack", "fabric", "switch", "rail"])
def test_subjects_by_words_and_by_name_are_among_those_selected(fleet_copy, kind):
    fleet = load_fleet(fleet_copy.root)
    for share in (1, 2):
        selection = NodeSelection(fleet, tuple(fleet.nodes), share, 2)
        whole = [str(subject) for subject, _ in selection.subjects(kind)]
        for word in ("n0003", "3", "gpu3", "/", "3/g", "r01", "zzz"):
            words = KeywordPattern((word,), frozenset({(True,)}))
            assert [one.id for one in SelectedSubjects(selection).matching(kind, words)] == [
                one for one in whole if word in one
            ]
            other = KeywordPattern((word,), frozenset({(False,)}))
            assert [one.id for one in SelectedSubjects(selection).matching(kind, other)] == [
                one for one in whole if word not in one
            ]
        assert [
            one.id for one in SelectedSubjects(selection).with_ids(kind, [*whole[::3], "no/such", "none"])
        ] == whole[::3]
