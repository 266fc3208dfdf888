"""A percentage reads 0 or 100 only where it is exactly that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.text.lists import format_percent


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (1, "100 %"), (0.5, "50 %"), (99_998 / 100_000, "99.99 %"), (1e-9, "0.01 %"), (0.98765, "98.77 %")],
)
def test_a_share_is_written_with_two_digits(share, text):
    assert format_percent(share) == text


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_whatever_fails_or_passes_shows(one, other):
    assert format_percent(one / (one + other)) not in ("0 %", "100 %")
