"""Fixtures of the command line's tests."""

from __future__ import annotations

from person import ann  # noqa: F401 — a fixture
