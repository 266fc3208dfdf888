"""A design declares the partitions of its nodes' adapters, and what a port carries is held against that."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from assay.fabric.health.switch_facts import describe_pkey_differences
from assay.model.specs.fabric.design_parts import FULL_MEMBER_BIT
from assay.model.specs.fabric.fabric_design import FabricDesign

ALL = {"pkey": "0x7fff", "membership": "limited"}
SOME = {"pkey": "0x0012", "membership": "full", "nodes": ["n1..n2"]}
OTHERS = {"pkey": "0x0012", "membership": "limited", "nodes": ["n3"]}


def design(*partitions: dict[str, Any]) -> FabricDesign:
    switch = {"rack": "r1", "u": 1}
    return FabricDesign.model_validate(
        {
            "kind": "FabricDesign",
            "name": "small",
            "nodes": ["n1..n3"],
            "rails": 1,
            "rate": "4xNDR",
            "switch": {"product": "MQM9700", "ports": 64},
            "leaves": {"name": "leaf-{unit}-{rail}", "down": "1..4", "up": "5..8", "at": [switch | {"guid": LEAF}]},
            "spines": {"name": "spine-{index}", "per_pair": 4, "at": [switch | {"guid": SPINE, "u": 2}]},
            "partitions": list(partitions),
        }
    )


LEAF, SPINE = "0xb83f000000001000", "0xb83f000000002000"


def test_members_are_named_or_every_node():
    known = design(ALL, SOME, OTHERS)
    assert [known.pkeys_of(node) for node in ("n1", "n2", "n3")] == [
        {0x7FFF, 0x8012}, {0x7FFF, 0x8012}, {0x7FFF, 0x0012},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("partitions", "said"),
    [
        ([ALL, ALL], "limited membership in 0x7fff, of every node is given twice"),
        ([SOME, SOME | {"nodes": ["n2"]}], "full membership in 0x0012, of n2 is given twice"),
        ([SOME | {"nodes": ["n2..n9"]}], "n4 is a member of 0x0012, and no node of this design"),
        ([SOME | {"nodes": ["n9..n2"]}], "is no range of names"),
        ([SOME | {"pkey": "0x8012"}], "String should match pattern"),
        ([SOME | {"pkey": "0x0000"}], "String should match pattern"),
    ],
)
def test_partitions_that_contradict_themselves_are_refused(partitions, said):
    with pytest.raises(ValidationError, match=said):
        design(*partitions)


def test_what_differs_is_said_in_words():
    assert describe_pkey_differences({0xFFFF, 0x8012}, {0xFFFF, 0x0012, 0x8013, 0x7FFF}) == [
        "is a limited member of 0x0012, designed as a full one",
        "is a full member of 0x0013, which is not designed",
        "is a limited member of 0x7fff, which is not designed",
    ]
    assert describe_pkey_differences({0xFFFF, 0x7FFF}, set()) == ["is no limited or full member of 0x7fff"]


@given(designed=st.sets(st.integers(1, 0xFFFF)), found=st.sets(st.integers(1, 0xFFFF)))
def test_what_differs_is_said_of_each_partition_once(designed, found):
    said = describe_pkey_differences(designed, found)
    assert len(said) == len({key % FULL_MEMBER_BIT for key in designed ^ found})
    assert bool(said) == (designed != found)
