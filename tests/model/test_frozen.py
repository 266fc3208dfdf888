"""A frozen class is what `dataclass(frozen=True, slots=True)` makes of the same text."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from assay.model.facts import frozen


@frozen
class Port:
    switch: str
    number: int = 1
    lanes: list[int] = field(default_factory=list, compare=False)
    label: str = field(default="", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError("ports are counted from 1")


@frozen
class OpticalPort(Port):
    power_dbm: float = 0.0


@dataclass(frozen=True, slots=True)
class PlainPort:
    switch: str
    number: int = 1
    lanes: list[int] = field(default_factory=list, compare=False)
    label: str = field(default="", kw_only=True, repr=False)


def test_it_is_made_compared_hashed_and_shown_as_a_dataclass_is() -> None:
    port, plain = Port("leaf1", 3, label="up"), PlainPort("leaf1", 3, label="up")
    assert repr(port) == repr(plain).replace("PlainPort", "Port")
    assert port == Port("leaf1", 3, [9], label="up")
    assert port not in (Port("leaf1", 3), plain)
    assert hash(port) == hash(Port("leaf1", 3, [9], label="up")) == hash(plain)
    assert Port("leaf1").lanes is not Port("leaf1").lanes
    assert replace(port, number=4) == Port("leaf1", 4, label="up")
    with pytest.raises(ValueError, match="counted from 1"):
        Port("leaf1", 0)
    with pytest.raises(TypeError):
        Port("leaf1", 3, [], "up")  # type: ignore[misc]


def test_nothing_changes_it_and_it_can_be_copied() -> None:
    port = OpticalPort("leaf1", 3, power_dbm=-2.5, label="up")
    with pytest.raises(FrozenInstanceError, match="'switch' of a OpticalPort to 'leaf2': it is frozen"):
        port.switch = "leaf2"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="it is frozen"):
        del port.number
    with pytest.raises(AttributeError):
        port.speed = 400  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(port)) == copy.deepcopy(port) == port
    assert port != Port("leaf1", 3, label="up")
