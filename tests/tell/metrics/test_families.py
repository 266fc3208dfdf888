"""The list of metric families: named by Prometheus' rules, and documented."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain

import pytest

from assay.tell.metrics.families import FAMILIES, LABELS, Family

EVERY = list(chain.from_iterable(FAMILIES.values()))


def test_a_name_is_used_once() -> None:
    assert [name for name, count in Counter(one.name for one in EVERY).items() if count > 1] == []


@pytest.mark.parametrize("family", EVERY, ids=lambda one: one.name)
def test_a_name_says_the_type(family: Family) -> None:
    assert re.fullmatch(r"assay(_[a-z]+)+", family.name)
    assert family.name.endswith("_total") == (family.type == "counter")
    assert bool(family.edges) == (family.type == "histogram")
    assert list(family.edges) == sorted(family.edges)


def test_every_label_is_in_use() -> None:
    assert {label for one in EVERY for label in one.labels} == set(LABELS)


def test_only_families_of_single_nodes_have_the_node_as_a_label() -> None:
    assert all(one.name.startswith("assay_node_") == ("node" in one.labels) for one in EVERY)
