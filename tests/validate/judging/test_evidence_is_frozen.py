"""No check can change what other checks read, at any depth, and a check that tries says so."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.reading import FrozenDict, FrozenList, FrozenValueError, freeze_value

pytest_plugins = ["pytester"]

CHANGES = {
    "pop of a key": "event.pop('xid')",
    "item": "event['xid'] = 0",
    "update": "event.update(xid=0)",
    "deeper list": "event['seen'].clear()",
    "deeper mapping": "event['seen'][0]['at'] = 0",
    "list": "gpu.events.clear()",
    "sort": "gpu.events.sort(key=str)",
    "slice": "gpu.events[:] = []",
}
CAUGHT = """
    try:
        {}
    except Exception:
        pass
"""
SUITE = """
import copy
import pytest

pytestmark = pytest.mark.phase("zap")

{changing}

def test_zz_other(gpu):
    assert gpu.events == [{{"xid": 79, "seen": [{{"at": 1}}]}}]


def test_copies(gpu):
    for event in copy.deepcopy(gpu.events) + [dict(event) for event in gpu.events]:
        event.pop("xid")
    assert len(list(gpu.events) + [1]) == 2
    assert sorted(gpu.events, key=str) == gpu.events
"""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


def changing(name: str, body: str) -> str:
    return f"def test_{name}(gpu):\n    event = gpu.events[0]\n{body}\n\n"


def test_a_check_that_changes_evidence_is_an_error_and_the_next_one_sees_all_of_it(fleet_copy, verdicts):
    names = {f"c{number}": change for number, change in enumerate(CHANGES.values())}
    text = "".join(changing(name, f"    {change}") for name, change in names.items())
    text += "".join(changing(f"quiet_{name}", CAUGHT.format(change)) for name, change in names.items())
    fleet_copy.suite(SUITE.format(changing=text))
    fleet_copy.collected("n0003")
    path = fleet_copy.evidence / "n0003.json"
    document = json.loads(path.read_text())
    for device in document["channels"]["probe"]["gpu"]["devices"].values():
        device["events"] = {"value": [{"xid": 79, "seen": [{"at": 1}]}]}
    path.write_text(json.dumps(document))
    for options in ((), ("--assay-ordinary-items",)):
        found = verdicts(fleet_copy.outcomes("--assay-node", "n0003", *options))
        assert (found["zz_other"], found["copies"]) == ("pass: ", "pass: ")
        for name in names:
            assert found[name].startswith("error: FrozenValueError: evidence cannot be changed"), found[name]
            assert found[f"quiet_{name}"] == "pass: "


@given(JSON)
def test_frozen_data_equals_what_it_was_made_of_and_copies_are_plain(data):
    frozen = freeze_value(data)
    assert frozen == data
    assert json.dumps(frozen) == json.dumps(data)
    for copied in (copy.deepcopy(frozen), pickle.loads(pickle.dumps(frozen))):
        assert (copied, type(copied)) == (data, type(data))


@pytest.mark.parametrize("kind", [list, dict])
def test_every_method_that_changes_a_list_or_a_mapping_is_refused(kind):
    frozen = {list: FrozenList([2, 1]), dict: FrozenDict({1: 2})}[kind]
    before, arguments = copy.copy(frozen), [(), (0,), (0, 0), ([],), ({5: 6},)]
    for name in set(dir(kind)) - set(dir(object)):
        for some in arguments:
            try:
                getattr(frozen, name)(*some)
            except (TypeError, LookupError, ValueError, AttributeError):
                continue
    assert frozen == before
    with pytest.raises(FrozenValueError):
        frozen.clear()
