"""What a fact becomes: JSON with every field it shows, a stored body with what it may leave out, and itself again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from assay.declare.schemas import build_list_schema
from assay.model.facts import extend, fact, from_json, inline, internal, shown, to_json, to_stored


@fact
class Leaf:
    """A leaf."""

    kind: str
    """Which kind."""
    origin: str = shown("from", missing="somewhere")
    """Where it grew."""
    note: str = shown(omit_stored=True, default="")
    """What to know."""


@fact
class Pot:
    """A pot of tea."""

    leaf: Leaf = inline()
    cups: tuple[int, ...]
    """The size of each cup."""
    shelf: object = internal(default=None)
    others: Mapping[str, Leaf] = shown(default_factory=dict)
    """Other leaves by name."""
    guest: str | None = shown(omit=True, default=None)
    """Who drinks it; missing if nobody does."""


@fact
class NamedPot:
    """A pot with a name."""

    cups: tuple[int, ...]
    others: Mapping[str, Leaf]
    name: str


POT = Pot(Leaf("assam", "north"), (2, 3), object(), {"b": Leaf("oolong", "east", "dark")})


def test_json_has_every_field_that_is_shown():
    others = {"b": {"kind": "oolong", "from": "east", "note": "dark"}}
    assert to_json(POT) == {"kind": "assam", "from": "north", "note": "", "cups": [2, 3], "others": others}


def test_a_stored_body_leaves_out_what_is_the_default():
    assert to_stored(Leaf("assam", "north")) == {"kind": "assam", "from": "north"}


@pytest.mark.parametrize("encode", [to_json, to_stored])
def test_a_fact_is_read_back(encode):
    leaf = Leaf("assam", "north", "dark")
    assert from_json(Leaf, json.loads(json.dumps(encode(leaf)))) == leaf


def test_a_key_that_an_old_body_lacks_is_read_as_declared_and_any_other_is_missed():
    assert from_json(Leaf, {"kind": "assam"}) == Leaf("assam", "somewhere")
    with pytest.raises(KeyError, match="kind"):
        from_json(Leaf, {})


def test_a_named_tuple_is_refused_since_json_would_lose_its_names():
    class Pair(NamedTuple):
        left: int

    with pytest.raises(TypeError, match="Pair"):
        to_json(Pair(1))


def test_a_fact_is_extended_by_more():
    assert extend(NamedPot, POT, name="evening") == NamedPot((2, 3), POT.others, "evening")


def test_its_schema_has_the_keys_of_its_json_and_the_texts_of_its_fields():
    shape = build_list_schema(Pot, is_closed=True)["$defs"]["Pot"]
    assert shape["properties"].keys() == {*to_json(POT), "guest"}
    assert shape["required"] == [*to_json(POT)]
    assert shape["properties"]["guest"] == {"type": "string", "description": "Who drinks it; missing if nobody does."}
    assert shape["properties"]["from"]["description"] == "Where it grew."
