"""Searches beside other traffic: nobody is named for it, and who is faulty is found in as many rounds as without."""

from __future__ import annotations

import pytest

from bench.congestion import FAULTS, METHODS, simulate


@pytest.mark.parametrize("traffic", ["scattered", "storms"])
def test_nobody_is_named_for_other_traffic(traffic: str) -> None:
    totals = simulate("assay", 64, traffic, "nothing wrong", 20)
    assert totals.falsely <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("size", "searches"), [(512, 20), (2048, 5)])
def test_nobody_is_named_on_larger_fabrics_either(size: int, searches: int) -> None:
    assert simulate("assay", size, "scattered", "nothing wrong", searches).falsely <= 1


@pytest.mark.parametrize("fault", ["1 slow", "1 hung"])
def test_a_single_fault_is_found_in_as_many_rounds_as_ever(fault: str) -> None:
    quiet, busy = (simulate("assay", 64, traffic, fault, 10) for traffic in ("none", "scattered"))
    assert (quiet.found, quiet.falsely, quiet.rounds) == (10, 0, 60)
    assert (busy.found, busy.rounds <= 100) == (10, True)


def test_traffic_in_one_place_is_told_from_most_of_its_nodes() -> None:
    assert simulate("assay", 64, "busy switch", "nothing wrong", 10).falsely <= 4


@pytest.mark.parametrize("method", [name for name in METHODS if name != "assay"])
def test_the_other_methods_find_a_single_fault(method: str) -> None:
    for fault in ("1 slow", "1 hung"):
        assert fault in FAULTS
        assert simulate(method, 64, "none", fault, 10).found == 10
