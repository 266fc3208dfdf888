"""Every entry kind reads what it writes, entries of older versions read as they did, and no other code knows bodies."""

from __future__ import annotations

import ast
import json
import types
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay.decide.state.entry_messages import EntryFormatter
from assay.model.entries.entry_content import VERSION_KEY, EntryContent, Upcaster
from assay.model.entries.registry import CONTENT_CLASSES, UnknownEntry, decode_entry
from assay.model.errors import AssayError
from assay.model.facts import fact, shown
from assay.model.ledger_entry import LedgerEntry
from tests.support.places import ROOT

RECORDED = json.loads((ROOT / "tests/data/recorded_entries.json").read_text())
SOURCE = Path(assay.__file__).parent
SCALARS: dict[Any, st.SearchStrategy[Any]] = {str: st.text(), int: st.integers(0, 10**6), bool: st.booleans()}
SCALARS[float] = st.floats(allow_nan=False, allow_infinity=False)
JSON_OBJECTS = st.dictionaries(st.text(min_size=1), st.text() | st.integers() | st.lists(st.text()), max_size=3)


def values(annotation: Any) -> st.SearchStrategy[Any]:
    """Return values of a field of this type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in SCALARS:
        return SCALARS[annotation]
    if isinstance(annotation, type) and hasattr(annotation, "__dataclass_fields__"):
        return contents(annotation)
    if origin is tuple:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is types.UnionType:
        return st.one_of(*(st.none() if one is type(None) else values(one) for one in arguments))
    if getattr(origin, "__name__", "") == "Mapping":
        return JSON_OBJECTS if arguments[1] is Any else st.dictionaries(st.text(), values(arguments[1]), max_size=3)
    return st.sampled_from(arguments)  # a Literal


def contents(cls: type) -> st.SearchStrategy[Any]:
    """Return contents of a class, with any values."""
    hints = get_type_hints(cls)
    return st.builds(cls, **{each.name: values(hints[each.name]) for each in fields(cls)})


@pytest.mark.parametrize("kind", sorted(CONTENT_CLASSES))
def test_every_kind_reads_what_it_writes(kind):
    @given(contents(CONTENT_CLASSES[kind]))
    def round_trip(content):
        entry = content.make_entry("id", "2026-11-22T09:00:00+00:00", "n1")
        stored = json.loads(json.dumps(entry.body))
        assert decode_entry(LedgerEntry("id", entry.at, kind, "n1", stored)) == content
        assert decode_entry(entry).to_body() == stored

    round_trip()


@pytest.mark.parametrize("recorded", RECORDED, ids=[f"{number}-{one['kind']}" for number, one in enumerate(RECORDED)])
def test_what_was_recorded_before_the_kinds_had_classes_reads_the_same(recorded):
    entry = LedgerEntry("id", recorded["at"], recorded["kind"], recorded["node"], recorded["body"])
    assert EntryFormatter().format(entry) == recorded["message"]
    body = decode_entry(entry).to_body()
    known = {name: value for name, value in entry.body.items() if name in body}
    assert known == {name: body[name] for name in known}
    if body.keys() == entry.body.keys():
        assert json.dumps(body, sort_keys=True) == json.dumps(entry.body, sort_keys=True)


def test_a_recorded_body_of_each_kind_is_written_byte_for_byte_as_it_was():
    same = [
        one["kind"] for one in RECORDED if CONTENT_CLASSES[one["kind"]].from_body(one["body"]).to_body() == one["body"]
    ]
    assert set(same) == set(CONTENT_CLASSES)


def test_an_unknown_kind_is_passed_through_untouched():
    entry = LedgerEntry("id", "2026-11-22T09:00:00+00:00", "tea.made", "n1", {"leaves": 3, VERSION_KEY: 7})
    content = decode_entry(entry)
    assert isinstance(content, UnknownEntry)
    assert content.to_body() == entry.body


def test_a_body_that_lacks_a_field_names_entry_and_field():
    with pytest.raises(AssayError, match=r"ledger entry 7: an entry of kind transition has no 'to'"):
        decode_entry(LedgerEntry("id", "2026-11-22T09:00:00+00:00", "transition", "n1", {"from": "test"}, seq=7))


@fact
class Brewed(EntryContent):
    """A kind at its third version: `minutes` was `seconds` in the second, and `cups` came with the third."""

    kind = "tea.brewed"
    version = 3
    upcasters: ClassVar[Mapping[int, Upcaster]] = {
        1: lambda body: {**body, "seconds": 180},
        2: lambda body: {**body, "minutes": body["seconds"] // 60},
    }
    leaf: str
    minutes: int
    cups: tuple[str, ...] = ()
    spout: str = shown(omit_stored=True, default="")


@pytest.mark.parametrize(
    "body",
    [
        {"leaf": "assam"},
        {"leaf": "assam", "seconds": 180, VERSION_KEY: 2},
        {"leaf": "assam", "minutes": 3, "cups": [], VERSION_KEY: 3},
    ],
)
def test_older_versions_are_raised_on_reading(body):
    assert Brewed.from_body(body) == Brewed("assam", 3)
    assert Brewed("assam", 3).to_body() == {"leaf": "assam", "minutes": 3, "cups": [], VERSION_KEY: 3}


@pytest.mark.parametrize("version", [4, 0, "3", None])
def test_a_version_that_is_not_known_is_refused(version):
    with pytest.raises(AssayError, match="this assay reads versions up to 3"):
        Brewed.from_body({"leaf": "assam", VERSION_KEY: version})


def test_no_other_code_takes_a_body_apart_or_makes_one():
    """Code reads and writes entries by their contents. Only printing a whole body as JSON is another matter."""
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        if "LedgerEntry" in (text := path.read_text()) and path.relative_to(SOURCE).parts[0] not in ("model", "ledger")
        for node in ast.walk(ast.parse(text))
        if _takes_apart(node) or (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "LedgerEntry")
    ]
    assert found == []


def _takes_apart(node: ast.AST) -> bool:
    """Whether this is `x.body[…]` or `x.body.…`, and not of an `UnknownEntry`."""
    inner = node.value if isinstance(node, ast.Subscript | ast.Attribute) else None
    of_entry = isinstance(inner, ast.Attribute) and inner.attr == "body"
    return of_entry and getattr(inner.value, "id", "") != "content"
