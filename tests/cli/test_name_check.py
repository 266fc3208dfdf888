"""A mistyped name is answered with all names that are as near."""

from __future__ import annotations

from assay.model.text.lists import suggest_names


def test_nodes_that_are_as_near_are_all_named():
    assert suggest_names("n0009", [f"n{number:04}" for number in range(1, 5)]) == "did you mean n0001..n0004?"


def test_of_many_names_the_three_nearest_are_named():
    known = ["production", "production-netboot", "production-poweron", "production-reboot", "triage"]
    assert suggest_names("prodution", known).startswith("did you mean production or production-")
    assert suggest_names("prodution", known).count(" or ") == 2
    assert (
        suggest_names("x", known)
        == "known: production, production-netboot, production-poweron, production-reboot, triage"
    )
