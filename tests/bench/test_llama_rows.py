"""The fault injector's table, and the histories made from it."""

from __future__ import annotations

from collections import Counter

from assay.cli.workspace import load_surrounding_catalog
from bench.injector import load_table, make_original_history, make_scaled_history
from tests.support.places import ROOT


def test_the_rows_are_the_papers_and_every_fault_is_one_that_the_catalogue_knows():
    told = load_table()
    assert (len(told.rows), sum(row.count for row in told.rows)) == (18, 419)
    assert round(told.rate * 1000, 2) == 3.79, "a thousand node-days"
    catalog = load_surrounding_catalog(ROOT)
    assert [name for row in told.rows for name in row.shows if catalog.find_class(name) is None] == []


def test_a_history_has_each_row_as_often_as_it_happened_and_is_the_same_again():
    told = load_table()
    history = make_original_history(told)
    assert history == make_original_history(told)
    seen = Counter(detail.partition(" #")[0] for detail in {one["detail"] for one in history if "detail" in one})
    assert seen == {row.component: row.count for row in told.rows if row.shows}


def test_another_fleet_has_as_many_as_its_size_and_time_make():
    told = load_table()
    shown = {one["detail"] for one in make_scaled_history(told, 400, 365) if "detail" in one}
    assert abs(len(shown) - 553 * 324 / 419) < 80
