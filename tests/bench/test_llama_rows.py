"""The table that weighs the fault injector, and the histories that it makes."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from assay.cli.verbs.faults import load_catalog_for

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # bench/ is no part of the package

from bench.injector import as_it_was, at_that_rate, table  # noqa: E402 — see above


def test_the_rows_are_the_papers_and_every_fault_is_one_that_the_catalogue_knows():
    told = table()
    assert (len(told.rows), sum(row.count for row in told.rows)) == (18, 419)
    assert round(told.rate * 1000, 2) == 3.79, "a thousand node-days"
    catalog = load_catalog_for(ROOT)
    assert [name for row in told.rows for name in row.shows if catalog.find_class(name) is None] == []


def test_a_history_has_each_row_as_often_as_it_happened_and_is_the_same_again():
    told = table()
    history = as_it_was(told)
    assert history == as_it_was(told)
    seen = Counter(detail.partition(" #")[0] for detail in {one["detail"] for one in history if "detail" in one})
    assert seen == {row.component: row.count for row in told.rows if row.shows}


def test_another_fleet_has_as_many_as_its_size_and_time_make():
    told = table()
    shown = {one["detail"] for one in at_that_rate(told, 400, 365) if "detail" in one}
    assert abs(len(shown) - 553 * 324 / 419) < 80
