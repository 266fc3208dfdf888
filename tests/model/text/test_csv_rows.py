"""Records as CSV: any text comes back, a line each, and no cell is a formula."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.text.csv_rows import format_csv


def read_cell(value: object) -> str:
    """Return what a reader of the file finds."""
    titles, row = csv.reader(format_csv(["a.b"], [{"a": {"b": value}}]))
    assert titles == ["a.b"]
    return row[0] if row else ""


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("plain", "plain"),
        ('rack 3, "left"', 'rack 3, "left"'),
        ("two\nlines", "two\\nlines"),
        ("\x1b[31mred", "\\u001b[31mred"),
        ('=HYPERLINK("http://x")', '\'=HYPERLINK("http://x")'),
        ("@SUM(1)", "'@SUM(1)"),
        (-3.5, "-3.5"),
        (True, "true"),
        (None, ""),
        (["n1", "n2"], "n1; n2"),
        (["=1+1"], "'=1+1"),
        ([{"rack": "r1"}], '[{"rack": "r1"}]'),
        ({"rack": "r1"}, '{"rack": "r1"}'),
    ],
)
def test_a_value_is_a_cell(value: object, cell: str) -> None:
    assert read_cell(value) == cell


@pytest.mark.parametrize("record", [{}, {"a": None}, {"a": "text"}, {"a": {}}])
def test_what_is_missing_is_an_empty_cell(record: dict[str, object]) -> None:
    assert list(format_csv(["node", "a.b"], [{"node": "n1", **record}])) == ["node,a.b", "n1,"]


@given(st.text())
def test_any_text_is_one_cell_of_one_line(text: str) -> None:
    lines = list(format_csv(["text", "last"], [{"text": text, "last": "end"}]))
    (row,) = csv.reader(lines[1:])
    assert (len(lines), len(row), row[1]) == (2, 2, "end")
    assert not row[0].startswith(("=", "+", "-", "@"))
