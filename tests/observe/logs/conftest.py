"""A log's faults by name, and the shipped catalogues."""

from __future__ import annotations

from tests.decide.faults.conftest import catalog, tell

__all__ = ["catalog", "tell"]
