"""Texts of strangers: what could mislead a terminal or a reader is escaped, and JSON stays the same document."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from assay.model.text.safe_text import escape_controls, escape_line

HOSTILE = "\x1b]0;owned\x07\x1b[2K\x9b31m\u202eevil\u2066\x00\r\u2028\U000e0041\ufeff\udc80"


@given(st.text(st.characters()))
@example(HOSTILE)
def test_no_control_character_is_left(text: str) -> None:
    for escaped, kept in ((escape_controls(text), "\n\t"), (escape_line(text), "")):
        assert not [one for one in escaped if unicodedata.category(one) in ("Cc", "Zl", "Zp", "Cs") and one not in kept]
        assert not [
            one
            for one in escaped
            if unicodedata.bidirectional(one) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
        ]


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"])))
def test_what_is_printable_stays_as_it_is(text: str) -> None:
    assert escape_controls(text) == escape_line(text) == text


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
@example({"a": "\x7f\u202e\U000e0041\x85", "\u2028": [HOSTILE[:-1]]})
def test_a_json_document_stays_the_same_document(document: object) -> None:
    for indent in (None, 1):
        assert json.loads(escape_controls(json.dumps(document, ensure_ascii=False, indent=indent))) == document
