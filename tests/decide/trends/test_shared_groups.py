"""Whether parts that get worse share a group more often than by chance, against figures by hand."""

from __future__ import annotations

from collections import Counter
from math import comb

import pytest

from assay.decide.trends.change_warnings import ChangeScore, ChangeWarning
from assay.decide.trends.fleet_tables import SHARED_TRAITS
from assay.decide.trends.shared_groups import name_shared_groups


def traits_of(rack: str) -> tuple[str, ...]:
    return tuple(rack if trait == "rack" else "" for trait in SHARED_TRAITS)


def name_part(node: str, rack: str) -> ChangeWarning:
    return ChangeWarning(
        ChangeScore(node, "gpu0", "t", "C", "", traits_of(rack), 60, 65, 70, 0, 30, None, 85, 9, 9, 9), None
    )


def name_groups(named: dict[str, int], sizes: dict[str, int]) -> tuple[list[ChangeWarning], list[tuple[str, float]]]:
    """Return the warnings and the groups, of so many named parts and so many parts of each rack."""
    warnings = [name_part(f"{rack}-{number}", rack) for rack, count in named.items() for number in range(count)]
    told, groups = name_shared_groups(
        warnings,
        {
            ("t", at): Counter(sizes if trait == "rack" else {"": sum(sizes.values())})
            for at, trait in enumerate(SHARED_TRAITS)
        },
    )
    return told, [(group.value, group.p) for group in groups]


def test_p_is_hypergeometric_times_the_number_of_groups() -> None:
    told, groups = name_groups({"r1": 3, "r2": 1}, {"r1": 6, "r2": 40, "r3": 54})
    tail = (comb(6, 3) * comb(94, 1) + comb(6, 4)) / comb(100, 4)
    assert groups == [("r1", pytest.approx(3 * tail))]
    assert [one.group.startswith("rack r1: 3 of 6 (p 0.0") for one in told] == [True, True, True, False]


def test_what_one_look_would_call_sure_is_chance_among_many_groups() -> None:
    few = {"r1": 5, "r2": 15}
    assert name_groups({"r1": 3}, few)[1] == [], "10 in 1,140, times two groups, is above 0.01"
    assert name_groups({"r1": 3}, {"r1": 4, "r2": 16})[1] == [("r1", pytest.approx(2 * 4 / comb(20, 3)))]


def test_two_parts_are_no_group() -> None:
    assert name_groups({"r1": 2}, {"r1": 2, "r2": 400})[1] == []


def test_what_all_share_explains_nothing() -> None:
    assert name_groups({"r1": 5}, {"r1": 60})[1] == []
